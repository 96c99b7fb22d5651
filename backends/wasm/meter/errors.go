package meter

import "fmt"

// Error says why a module was not instrumented.
type Error struct {
	// Offset is where in the module, in bytes from its beginning.
	Offset int
	// Reason is what is wrong there, in words.
	Reason string
	// Unsupported is true for a module that may well be valid but uses what this
	// package does not know, such as threads, or what it keeps for itself; false
	// for a malformed or oversized one.
	Unsupported bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("WebAssembly module, offset %#x: %s", e.Offset, e.Reason)
}
