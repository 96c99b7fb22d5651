package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/caisson-dev/caisson/diskfile"
)

// format is the version of the files, and formatPlaces that of a binding with
// several places, limits or a guard of its own, or registered tools: a build that
// knows nothing of them refuses it, and does not run everything in the first place,
// without limits, unguarded.
const (
	format       = 1
	formatPlaces = 2
)

// maxRecord bounds what is read of any record, in bytes. The largest is a
// binding with its profile.
const maxRecord = 1 << 20

// BrokenError is a file that is torn or not the store's. It is left alone.
type BrokenError struct {
	File string
	Err  error
}

func (e *BrokenError) Error() string { return fmt.Sprintf("%s cannot be used: %v", e.File, e.Err) }
func (e *BrokenError) Unwrap() error { return e.Err }

// readJSON reads one record. What cannot be decoded is a [BrokenError].
func readJSON(file string, v any) error {
	raw, err := readFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return &BrokenError{file, err}
	}
	return nil
}

func writeJSON(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if raw = append(raw, '\n'); len(raw) > maxRecord {
		return fmt.Errorf("%s would have %d bytes, and could not be read again: it may have %d", file, len(raw), maxRecord)
	}
	return diskfile.WriteFile(file, raw, 0o600)
}

// readFile reads a regular file of at most maxRecord bytes.
func readFile(file string) ([]byte, error) {
	foreign := &BrokenError{file, fmt.Errorf("it is not a file of at most %d bytes", maxRecord)}
	f, info, err := diskfile.Open(file)
	if errors.Is(err, diskfile.ErrNotRegular) {
		return nil, foreign
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxRecord {
		return nil, foreign
	}
	return io.ReadAll(io.LimitReader(f, maxRecord))
}

// removeFile removes a file that may be gone already.
func removeFile(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// exists reports whether there is such a file.
func exists(file string) (bool, error) {
	_, err := os.Lstat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
