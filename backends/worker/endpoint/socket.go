package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// MaxSocketPath is what fits into a Linux sockaddr_un of 108 bytes with its
// terminating zero.
const MaxSocketPath = 107

// SocketPath is where the worker of a session listens below dir, a directory
// of the user's own whose path should be short. Whoever starts the worker and
// whoever looks for it compute the same path.
func SocketPath(dir, session string) string {
	sum := sha256.Sum256([]byte(session))
	return filepath.Join(dir, "w-"+hex.EncodeToString(sum[:8])+".sock")
}

// CheckSocketPath says whether a socket can be bound at path at all.
func CheckSocketPath(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("the socket path %q is not absolute", path)
	case len(path) > MaxSocketPath:
		return fmt.Errorf("the socket path %q has %d bytes and a Unix socket takes at most %d: choose a shorter runtime directory",
			path, len(path), MaxSocketPath)
	}
	return nil
}

// Listen binds a socket at path with mode 0600. Its directory is made 0700 when
// missing, and refused when somebody else could write or look into it. Whatever
// stands at path is replaced: the caller holds the lock that says that its
// owner is dead.
func Listen(path string) (*net.UnixListener, error) {
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	if err := PrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace the socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), l.Close())
	}
	return l, nil
}

// PrivateDir makes sure that dir is a directory of this user with mode 0700,
// making it and its parents when missing. One that others may enter is refused,
// not changed: it may be somebody's /tmp.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the socket directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the socket directory %q is no directory", dir)
	}
	return checkPrivate(dir, info)
}
