package confine

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Prove shows that writes are really refused here, by trying: it makes two
// directories in dir, limits a thread to one and writes to both. Nil means that
// the inner write worked and the outer one did not.
func Prove(dir string) error {
	base, err := os.MkdirTemp(dir, "prove-")
	if err != nil {
		return unprepared(dir, err)
	}
	defer os.RemoveAll(base)
	inside, outside := filepath.Join(base, "inside"), filepath.Join(base, "outside")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return unprepared(dir, err)
		}
	}
	victim := filepath.Join(outside, "file")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		return unprepared(dir, err)
	}
	l, err := NewLauncher(Policy{Mode: tool.ReadOnly, Temp: inside})
	if err != nil {
		return err
	}
	defer l.Close()
	l.Do(func() { err = proveWrites(inside, outside, victim) })
	return err
}

// unprepared is the error for a directory in which nothing can be tried.
func unprepared(dir string, err error) error {
	return tool.Errorf(tool.Internal, "whether confinement holds cannot be tried: %w", err).WithPath(dir).
		WithHint("have a directory there in which the account can make files: look at the room, the mode and the umask")
}

// proveWrites tries on the limited thread what must work and what must not.
func proveWrites(inside, outside, victim string) error {
	if err := touch(filepath.Join(inside, "file")); err != nil {
		return tool.Errorf(tool.Internal, "a confined write that must work failed: %w", err)
	}
	attempts := []struct {
		what string
		err  error
	}{
		{"creation", touch(filepath.Join(outside, "new"))},
		{"truncation", unix.Truncate(victim, 0)},
		{"removal", unix.Unlink(victim)},
	}
	for _, a := range attempts {
		if !errors.Is(a.err, unix.EACCES) {
			return tool.Errorf(tool.Internal, "confinement does not hold: a %s outside was not refused (%v)", a.what, a.err).
				WithHint("do not rely on the modes standard and read_only here; the kernel's Landlock does not do what it says")
		}
	}
	return nil
}

func touch(path string) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
