//go:build !linux

package job

// noexec reports whether nothing in dir can be executed: not where workers run on
// the user's own machine only.
func noexec(string) bool { return false }
