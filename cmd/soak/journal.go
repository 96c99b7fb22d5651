//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// recent is how many events a failure prints.
const recent = 300

// journal keeps what happened: the last events in memory, to be printed, and
// everything in a file.
type journal struct {
	began time.Time

	mu   sync.Mutex
	file io.Writer
	last [recent]string
	next int
	err  error // of the file
}

// note records an event of somebody.
func (j *journal) note(who, format string, args ...any) {
	line := fmt.Sprintf("%9.3f %-12s %s", time.Since(j.began).Seconds(), who, fmt.Sprintf(format, args...))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last[j.next%recent] = line
	j.next++
	if _, err := fmt.Fprintln(j.file, line); err != nil && j.err == nil {
		j.err = err
	}
}

// String is the last events.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	for i := max(0, j.next-recent); i < j.next; i++ {
		b.WriteString(j.last[i%recent] + "\n")
	}
	if j.err != nil {
		fmt.Fprintf(&b, "the journal's file is incomplete: %v\n", j.err)
	}
	return b.String()
}
