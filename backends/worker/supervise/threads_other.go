//go:build !linux

package supervise

// ThreadRoom is none: limits here count otherwise, and how much of them is used up is not
// known.
func ThreadRoom() int { return 0 }
