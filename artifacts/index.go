package artifacts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// record is an artifact with the place of its record.
type record struct {
	Artifact
	path string
}

func blobPath(sum string) string { return blobsDir + "/" + sum }

// recordPath is where the record of a publication is: the content first, so
// that references to it are found without opening a file, then a digest of the
// name, which may hold what a file name may not.
func recordPath(session, id, name string) string {
	tag := sha256.Sum256([]byte(name))
	content := strings.TrimPrefix(id, idPrefix)
	return indexDir + "/" + session + "/" + content + "-" + hex.EncodeToString(tag[:8]) + ".json"
}

// recordDigest is the content that a record's file name refers to; false for a
// file that is not ours.
func recordDigest(file string) (string, bool) {
	base, ok := strings.CutSuffix(file, ".json")
	sum, _, found := strings.Cut(base, "-")
	return sum, ok && found && isHex64(sum)
}

// walkIndex calls visit for every file in the index of the session, or of all
// sessions when it is empty.
func (s *Store) walkIndex(session string, visit func(session, file string) error) error {
	sessions := []string{session}
	if session == "" {
		var err error
		if sessions, err = s.names(indexDir); err != nil {
			return err
		}
	}
	for _, session := range sessions {
		if checkSession(session) != nil {
			continue // a foreign directory
		}
		files, err := s.names(indexDir + "/" + session)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := visit(session, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// records reads the records of the session ("" for all) that refer to the
// content ("" for any), oldest first.
func (s *Store) records(session, content string) ([]record, error) {
	var found []record
	err := s.walkIndex(session, func(session, file string) error {
		sum, ours := recordDigest(file)
		if !ours || content != "" && sum != content {
			return nil
		}
		path := indexDir + "/" + session + "/" + file
		a, err := s.readRecord(path)
		switch {
		case errors.Is(err, ErrNotFound): // deleted since it was listed
		case err != nil:
			s.log.Warn("an artifact's record cannot be read and is left alone", "path", path, "error", err)
		default:
			found = append(found, record{a, path})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.URI, b.URI))
	})
	return found, err
}

// referenced reports whether any record needs the content. A record that
// cannot be read counts: its file name tells.
func (s *Store) referenced(content string) (bool, error) {
	used := errors.New("used")
	err := s.walkIndex("", func(_, file string) error {
		if sum, ok := recordDigest(file); ok && sum == content {
			return used
		}
		return nil
	})
	if errors.Is(err, used) {
		return true, nil
	}
	return false, err
}

// readRecord reads one record and checks that it is the one its place says.
func (s *Store) readRecord(path string) (Artifact, error) {
	f, _, err := s.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Artifact{}, ErrNotFound
	} else if err != nil {
		return Artifact{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return Artifact{}, err
	}
	if len(data) > maxRecord {
		return Artifact{}, errors.New("the record is too long")
	}
	var a Artifact
	if err := json.Unmarshal(data, &a); err != nil {
		return Artifact{}, fmt.Errorf("the record is torn: %w", err)
	}
	if path != recordPath(a.SessionID, a.ID, a.Name) || a.URI != artifactURI(a.SessionID, a.ID, a.Name) {
		return Artifact{}, errors.New("the record belongs somewhere else")
	}
	return a, nil
}

// writeRecord ties a record to its content. The lock is held.
func (s *Store) writeRecord(a Artifact) error {
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("the record of %s cannot be made: %w", a.URI, err)
	}
	dir := indexDir + "/" + a.SessionID
	if err := s.root.Mkdir(dir, 0o700); err == nil {
		if err := s.syncDir(indexDir); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the artifact store cannot be written: %w", err)
	}
	return s.writeAtomic(recordPath(a.SessionID, a.ID, a.Name), dir, data)
}
