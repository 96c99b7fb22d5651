package session_test

import (
	"testing"

	"github.com/caisson-dev/caisson/session"
)

// BenchmarkOpen is what a session costs beside its environment: its files, synced.
func BenchmarkOpen(b *testing.B) {
	s := newRig(b).start()
	for b.Loop() {
		if _, _, err := s.Open(b.Context(), session.OpenRequest{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is what a call costs beside its tool.
func BenchmarkCall(b *testing.B) {
	s := newRig(b).start()
	v := s.open(session.OpenRequest{})
	r := session.CallRequest{SessionID: v.ID, Name: "read_file", Arguments: []byte(`{"path":"none"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Call(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
