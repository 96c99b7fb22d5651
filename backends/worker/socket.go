package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// SocketPath is where the worker of a session listens below dir, a directory
// of the user's own whose path should be short. Both ends of a session compute
// it, so it depends on nothing but its arguments.
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
		return fmt.Errorf("the socket path %q has %d bytes, and a Unix socket takes at most %d: choose a shorter runtime directory",
			path, len(path), MaxSocketPath)
	}
	return nil
}
