//go:build unix

package artifacts

import (
	"errors"
	"fmt"
)

// syncDir makes the names in a directory of the store last.
func (s *Store) syncDir(dir string) error {
	f, err := s.root.Open(dir)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("the artifact store cannot be synced: %w", err)
	}
	return nil
}
