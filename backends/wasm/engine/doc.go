// Package engine is the process in which WebAssembly guests run: this same program,
// started again as "caisson wasm-engine", one for each environment. Compiled guest
// code cannot be preempted, so it would stop the garbage collector of the service;
// here it stops only the collector of its own process, and only until its slice of
// fuel is spent.
//
// The service speaks protocol 4's frames with it over its standard streams, with the
// methods of this package. An engine ends when its standard input does, and on Linux
// with the thread that started it.
//
// What environments, sessions and profiles are is not known here.
package engine
