//go:build linux

package process

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
)

// helperVariable names what this test program does instead of tests: those that
// need a program of their own run it again.
const helperVariable = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "orphans":
		helpOrphans()
	case "worker":
		helpWorker()
	case "unmarked":
		helpUnmarked()
	case "recycle":
		helpRecycle()
	case "polite":
		helpPolite()
	case "blind":
		helpBlind()
	default:
		goleak.VerifyTestMain(m)
	}
}

// patience is how long a test waits for what must come, on the busiest machine.
const patience = time.Minute

// recorder keeps events in order.
type recorder struct {
	mu     sync.Mutex
	events []tool.ProcessEvent
	more   chan struct{}
}

func newRecorder() *recorder { return &recorder{more: make(chan struct{}, 1)} }

func (r *recorder) add(e tool.ProcessEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *recorder) of(id string) []tool.ProcessEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e tool.ProcessEvent) bool { return e.Process.ID != id })
}

// until waits for an event of the process that is what is looked for.
func (r *recorder) until(t testing.TB, id string, is func(tool.ProcessEvent) bool) tool.ProcessEvent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		for _, e := range r.of(id) {
			if is(e) {
				return e
			}
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			t.Fatalf("the event never came; there were %+v", r.of(id))
		}
	}
}

func outputClosed(e tool.ProcessEvent) bool { return e.Process.OutputClosed }

func ofType(want tool.ProcessEventType) func(tool.ProcessEvent) bool {
	return func(e tool.ProcessEvent) bool { return e.Type == want }
}

// newTest opens a Manager on directories of the test's own and closes it with
// the test.
func newTest(t testing.TB, change ...func(*Options)) (*Manager, *recorder) {
	t.Helper()
	r := newRecorder()
	o := Options{
		StateDir: filepath.Join(t.TempDir(), "state"), Session: "s1", Root: t.TempDir(),
		Env:         []string{"PATH=" + defaultPath, "HOME=/nonexistent", "LC_ALL=C"},
		DefaultMode: tool.Unconfined, Ceiling: tool.Unconfined, OnEvent: r.add,
	}
	for _, c := range change {
		c(&o)
	}
	m, err := NewManager(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m, r
}

// live counts the commands that run now, foreground ones included.
func live(m *Manager) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.live)
}

func start(t testing.TB, m *Manager, line string) tool.Process {
	t.Helper()
	return startRequest(t, m, tool.StartRequest{Command: line})
}

func startRequest(t testing.TB, m *Manager, r tool.StartRequest) tool.Process {
	t.Helper()
	p, err := m.Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t testing.TB, m *Manager, id string) tool.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := m.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// all reads the whole output, waiting for its end.
func all(t testing.TB, m *Manager, id string) string {
	t.Helper()
	var text []byte
	for {
		at := int64(len(text))
		r, err := m.Read(t.Context(), id, tool.ReadOptions{OffsetBytes: &at, Wait: patience, MaxBytes: MaxReadBytes})
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, r.Output...)
		if len(r.Output) == 0 {
			return string(text)
		}
	}
}

// see waits until the output holds text.
func see(t testing.TB, m *Manager, id, text string) {
	t.Helper()
	var got []byte
	for !bytes.Contains(got, []byte(text)) {
		at := int64(len(got))
		r, err := m.Read(t.Context(), id, tool.ReadOptions{OffsetBytes: &at, Wait: patience})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Output) == 0 {
			t.Fatalf("output is %q, without %q", got, text)
		}
		got = append(got, r.Output...)
	}
}
