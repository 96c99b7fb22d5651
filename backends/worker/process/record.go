package process

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends/tool"
)

const (
	recordFile    = "record.json"
	outputFile    = "output"
	outputEndFile = "output.end"
)

// record is what is on disk about a process: what everybody sees, and what
// only a later worker needs.
type record struct {
	tool.Process
	// Identity tells whether the pid is still this process's.
	Identity identity `json:"identity"`
	// Request is a digest of the start request. The environment in it may be
	// secret, so the request itself is not kept; the id is the digest's salt.
	Request string `json:"request,omitempty"`
	// Delivered and RecheckMinutes are stored for peers that use them.
	Delivered      bool `json:"completion_delivered,omitempty"`
	RecheckMinutes int  `json:"recheck_minutes,omitempty"`

	lostNow bool // settled as lost just now; not saved
}

// digest identifies a request of a process without disclosing it.
func digest(id string, r tool.StartRequest) (string, error) {
	b, err := json.Marshal(r) // maps are sorted, so equal requests have equal text
	if err != nil {
		return "", fmt.Errorf("encode the request: %w", err)
	}
	h := sha256.New()
	h.Write([]byte(id))
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// storeRecord replaces the record in dir, which exists. It is not synced.
func storeRecord(dir string, r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", r.ID, err)
	}
	temp := filepath.Join(dir, recordFile+".new")
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		return errors.Join(fmt.Errorf("write the record of %s: %w", r.ID, err), removeIfThere(temp))
	}
	if err := os.Rename(temp, filepath.Join(dir, recordFile)); err != nil {
		return fmt.Errorf("replace the record of %s: %w", r.ID, err)
	}
	return nil
}

// loadRecord reads the record in dir. Its id must be the directory's name.
func loadRecord(dir string) (record, error) {
	var r record
	f, err := os.Open(filepath.Join(dir, recordFile))
	if err != nil {
		return r, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("decode %s: %w", f.Name(), err)
	}
	if r.ID != filepath.Base(dir) {
		return r, fmt.Errorf("%s is the record of %q", f.Name(), r.ID)
	}
	return r, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
