// Package tool holds the data that every room of Caisson passes on: calls of
// tools and their results, descriptions of tools, records of background
// processes, and the one error type that keeps its kind from the far end of an
// environment to the editor.
//
// Nothing here does work or knows a backend. The JSON forms are those of wire
// protocol 4: snake case, empty members left out.
package tool
