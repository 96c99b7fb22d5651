package job

import "golang.org/x/sys/unix"

// noexec reports whether nothing in dir can be executed, as on a file system that
// is mounted so.
func noexec(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Flags&unix.ST_NOEXEC != 0
}
