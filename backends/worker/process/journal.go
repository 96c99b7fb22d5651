package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// journal holds the records of all processes, one JSON object a line, of which
// the last one of an id counts. A change is one appended line: it is there or
// not, and costs a few microseconds where a file of its own, replaced, costs
// hundreds for the blocks that the file system finds for it. Whoever has the
// registry's lock writes; a line that its death cut short is dropped.
type journal struct {
	path string

	mu    sync.Mutex
	file  *os.File
	size  int64
	limit int64 // at which it is compacted
}

// errLongRecord is a record that no reader of the journal would take.
var errLongRecord = errors.New("the record is too long")

// openJournal opens the journal at path, made when missing, and returns its
// records in the order of their first lines.
func openJournal(path string) (*journal, []record, error) {
	f, err := endpoint.OpenPlain(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{path: path, file: f, limit: minCompact}
	records, whole, err := readJournal(f)
	if err == nil {
		j.size = whole
		err = f.Truncate(whole)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return j, records, nil
}

// readJournal reads all whole lines, and says how long they are together.
func readJournal(r io.Reader) (records []record, whole int64, err error) {
	index := make(map[string]int)
	lines := bufio.NewReaderSize(r, maxRecord)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			records = slices.DeleteFunc(records, func(rec record) bool { return rec.Gone })
			return records, whole, nil
		}
		var rec record
		if err == nil {
			err = json.Unmarshal(line, &rec)
		}
		if err == nil && rec.ID == "" {
			err = errors.New("it names no process")
		}
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		}
		whole += int64(len(line))
		if i, ok := index[rec.ID]; ok {
			records[i] = rec
			continue
		}
		index[rec.ID] = len(records)
		records = append(records, rec)
	}
}

// put appends a record. It is in the hands of the kernel then, not synced. A
// record that could not be written whole is not there.
func (j *journal) put(rec record) error {
	line := append(rec.appendJSON(make([]byte, 0, 1024)), '\n')
	if len(line) > maxRecord {
		return fmt.Errorf("%w: %d bytes, and the most is %d", errLongRecord, len(line), maxRecord)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(line); err != nil {
		return errors.Join(fmt.Errorf("write the record of %s: %w", rec.ID, err), j.file.Truncate(j.size))
	}
	j.size += int64(len(line))
	if j.size > j.limit && j.compact() != nil {
		// The record is written, and the journal only longer than it need be, as it is
		// where a disk has no room for another one. It may be shortened later.
		j.limit = j.size + minCompact
	}
	return nil
}

// drop notes that the record was cleaned up.
func (j *journal) drop(id string) error {
	rec := record{Gone: true}
	rec.ID = id
	return j.put(rec)
}

// compact replaces the journal by one that holds each record once.
func (j *journal) compact() error {
	records, _, err := readJournal(io.NewSectionReader(j.file, 0, j.size))
	if err != nil {
		return fmt.Errorf("read %s again: %w", j.path, err)
	}
	var all bytes.Buffer
	for _, rec := range records {
		all.Write(append(rec.appendJSON(all.AvailableBuffer()), '\n'))
	}
	temp := j.path + ".new"
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("compact %s: %w", j.path, err)
	}
	_, err = f.Write(all.Bytes())
	if err == nil {
		err = os.Rename(temp, j.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("compact %s: %w", j.path, err), f.Close(), removeIfThere(temp))
	}
	old := j.file
	j.file, j.size = f, int64(all.Len())
	j.limit = max(minCompact, 2*j.size)
	return old.Close()
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
