//go:build !linux

package engine

// dieWithParent has no counterpart here: the end of the input ends us.
func dieWithParent() error { return nil }

// confine has no counterpart here: the guests' own limits hold.
func confine(uint64) error { return nil }

// lowerPriority has no counterpart here: compilers take their turn with others.
func lowerPriority(int, int) {}
