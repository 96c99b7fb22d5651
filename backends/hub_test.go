package backends_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

func event(i int) backends.Event {
	return backends.Event{Process: &tool.ProcessEvent{Process: tool.Process{ID: strconv.Itoa(i)}}}
}

func TestHub(t *testing.T) {
	h := backends.NewHub()
	quick, slow, early := h.Subscribe(), h.Subscribe(), h.Subscribe()
	early.Close()
	if _, err := early.Next(t.Context()); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("next of a closed one: %v", err)
	}
	for i := range backends.MaxQueuedEvents + 1 {
		h.Publish(event(i))
		if e, err := quick.Next(t.Context()); err != nil || e.Process.Process.ID != strconv.Itoa(i) {
			t.Fatalf("event %d: %+v, %v", i, e, err)
		}
	}
	// The slow one gets what was queued, and then is told.
	for i := range backends.MaxQueuedEvents {
		if e, err := slow.Next(t.Context()); err != nil || e.Process.Process.ID != strconv.Itoa(i) {
			t.Fatalf("queued event %d: %+v, %v", i, e, err)
		}
	}
	if _, err := slow.Next(t.Context()); tool.KindOf(err) != tool.Overloaded {
		t.Errorf("after it fell behind: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := quick.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("next after the context ended: %v", err)
	}
	h.Publish(event(7))
	h.Close(tool.Errorf(tool.Cancelled, "the environment was let go of"))
	if e, err := quick.Next(t.Context()); err != nil || e.Process.Process.ID != "7" {
		t.Errorf("the last event: %+v, %v", e, err)
	}
	if _, err := quick.Next(t.Context()); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("after the end: %v", err)
	}
	if _, err := h.Subscribe().Next(t.Context()); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("a late subscriber: %v", err)
	}
}

// TestHubOfLongEvents: few events are many where a far end writes much about each.
func TestHubOfLongEvents(t *testing.T) {
	h := backends.NewHub()
	slow, quick := h.Subscribe(), h.Subscribe()
	long := strings.Repeat("x", backends.MaxQueuedBytes/4)
	for i := range 6 {
		e := event(i)
		e.Process.Process.Command, e.Process.Process.Argv = long[:len(long)/2], []string{long[len(long)/2:]}
		if i == 0 {
			e.Process.Process.Command = strings.Repeat(long, 5) // alone it may be any length
		}
		h.Publish(e)
		if _, err := quick.Next(t.Context()); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if i == 0 {
			if _, err := slow.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 4 {
		if e, err := slow.Next(t.Context()); err != nil || e.Process.Process.ID != strconv.Itoa(i+1) {
			t.Fatalf("queued event %d: %v", i, err)
		}
	}
	if _, err := slow.Next(t.Context()); tool.KindOf(err) != tool.Overloaded {
		t.Errorf("after it fell behind: %v", err)
	}
}
