//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts what was done, for the report.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	steps  map[string]*timing
	peaks  map[string]int64
}

type timing struct {
	count int
	total time.Duration
	worst time.Duration
}

func newTally() *tally {
	return &tally{counts: map[string]int{}, steps: map[string]*timing{}, peaks: map[string]int64{}}
}

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// outcome counts what became of something.
func (t *tally) outcome(what string, e effect) {
	t.count(what + [...]string{done: " acknowledged", nothing: " refused", unknown: " unknown"}[e])
}

func (t *tally) step(name string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[name]
	if s == nil {
		s = &timing{}
		t.steps[name] = s
	}
	s.count++
	s.total += took
	s.worst = max(s.worst, took)
}

// peak keeps the largest value of something.
func (t *tally) peak(what string, value int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peaks[what] = max(t.peaks[what], value)
}

// String is the report of a soak that went well.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.steps)) {
		s := t.steps[name]
		fmt.Fprintf(&b, "  %-12s %6d   mean %8v   worst %8v\n", name, s.count,
			(s.total / time.Duration(s.count)).Round(time.Millisecond/10), s.worst.Round(time.Millisecond))
	}
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, "  %6d %s\n", t.counts[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.peaks)) {
		fmt.Fprintf(&b, "  %6d %s\n", t.peaks[name], name)
	}
	return "soak: nothing lost, nothing leaked\n" + b.String()
}
