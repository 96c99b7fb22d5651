//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// What may be there after known and unknown outcomes, and nothing else.
func TestFile(t *testing.T) {
	f := newFile()
	check := func(content string, fine bool) {
		t.Helper()
		known := *f
		if err := f.read(content); (err == nil) != fine {
			t.Errorf("%q: %v", content, err)
		}
		if !fine {
			*f = known
		}
	}
	check("x", false)
	f.wrote("one", done)
	f.wrote("two", nothing)
	check("two", false)
	f.wrote("two", unknown)
	check("on", false)
	check("two", true)
	check("one", false) // it was seen to be the other
	f.wrote("one", unknown)
	if err := f.edited("tw", "TW", unknown); err != nil {
		t.Error(err)
	}
	check("TWo", true)
	if err := f.edited("tw", "x", done); err == nil {
		t.Error("an edit of what is not there was acknowledged")
	}
	if err := f.edited("TW", "x", nothing); err == nil {
		t.Error("an edit of what is there was refused")
	}
}

func TestBook(t *testing.T) {
	b := newBook()
	b.appended("a", done)
	b.appended("b", unknown)
	b.appended("c", done)
	b.appended("d", nothing)
	for content, fine := range map[string]bool{
		"a\nc\n": true, "a\nb\nc\n": true, "b\na\nc\n": true, "a\nc\nb\n": true,
		"": false, "a\n": false, "c\na\n": false, "a\na\nc\n": false, "a\nc\nb\nb\n": false, "a\nc\nb": false, "a\nc\nd\n": false,
	} {
		if err := b.read(content); (err == nil) != fine {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestProcess(t *testing.T) {
	now := time.Now()
	code := func(n int) *int { return &n }
	exited := protocol.Process{Status: protocol.ProcessExited, ExitCode: code(7)}
	for name, row := range map[string]struct {
		p         process
		r         protocol.Process
		disturbed time.Time
		fine      bool
	}{
		"its code":       {process{script: script{code: 7}, stopped: nothing, closed: nothing}, exited, time.Time{}, true},
		"another code":   {process{script: script{code: 8}, stopped: nothing, closed: nothing}, exited, time.Time{}, false},
		"too early":      {process{script: script{code: 7, lasts: true}, stopped: nothing, closed: nothing}, exited, time.Time{}, false},
		"stopped":        {process{script: script{lasts: true}, stopped: unknown, closed: nothing}, protocol.Process{Status: protocol.ProcessExited, Signal: "SIGTERM"}, time.Time{}, true},
		"killed":         {process{script: script{lasts: true}, stopped: nothing, closed: nothing}, protocol.Process{Status: protocol.ProcessExited, Signal: "SIGTERM"}, time.Time{}, false},
		"honestly lost":  {process{began: now}, protocol.Process{Status: protocol.ProcessLost}, now.Add(1), true},
		"lost for fun":   {process{began: now}, protocol.Process{Status: protocol.ProcessLost}, now.Add(-1), false},
		"it rose again":  {process{final: &exited}, protocol.Process{Status: protocol.ProcessRunning}, now, false},
		"what is failed": {process{}, protocol.Process{Status: protocol.ProcessFailed}, now, false},
	} {
		if err := row.p.status(row.r, row.disturbed); (err == nil) != row.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOutput(t *testing.T) {
	for _, row := range []struct {
		offset   int64
		text     string
		complete bool
		fine     bool
	}{
		{0, "0\n1\n", false, true}, {2, "1\n", false, true}, {0, "0\n2\n", false, false},
		{0, counting(3), true, true}, {0, "0\n1\n", true, false}, {4, "2\n3\n", false, false},
	} {
		if err := within(counting(3), row.offset, row.text, row.complete); (err == nil) != row.fine {
			t.Errorf("%q at %d: %v", row.text, row.offset, err)
		}
	}
	p := process{script: script{echoes: true}, pieces: []piece{{"a\n", done}, {"b\n", unknown}, {"c\n", done}}}
	for text, fine := range map[string]bool{
		"a\nc\n": true, "a\nb\nc\n": true, "a\nb": false, "c\n": false, "a\nb\nb\nc\n": false, "a\nc\nx": false,
	} {
		if err := p.echoed(text, true); (err == nil) != fine {
			t.Errorf("%q: %v", text, err)
		}
	}
}
