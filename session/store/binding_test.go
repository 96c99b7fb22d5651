package store

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// olderBinding is one as builds wrote it that knew of one environment only.
const olderBinding = `{
  "format": 1,
  "id": "s-1",
  "workspace": "file:///w",
  "folder": "/w",
  "profile": {
    "name": "box",
    "backend": "docker",
    "workspace": "/workspace",
    "image": "a"
  },
  "environment": "caisson-0123456789abcdef0123456789abcdef",
  "root": "/workspace",
  "parent_id": "s-0",
  "labels": {
    "a": "b"
  },
  "created_at": "2026-01-01T00:00:00Z",
  "last_used_at": "2026-01-02T00:00:00Z",
  "closed": true,
  "removed": true,
  "incarnation": "0011223344556677",
  "failure": {
    "kind": "environmentLost",
    "message": "gone"
  }
}
`

// A session of an earlier build is read, and written as that build reads it.
func TestOlderBinding(t *testing.T) {
	s := open(t)
	dir := filepath.Join(s.dir, "sessions", "s-1")
	file := filepath.Join(dir, "binding.json")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, []byte(olderBinding), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, err := s.Load("s-1")
	if err != nil {
		t.Fatal(err)
	}
	if b.Profile.Image != "a" || b.Environment != identity || b.Root != "/workspace" || !b.Removed || b.Incarnation != "0011223344556677" ||
		b.ParentID != "s-0" || !b.Closed || b.Failure == nil || len(b.Places) != 0 || len(b.All()) != 1 {
		t.Errorf("read %+v", b)
	}
	if err := s.Save(b); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var was, is map[string]any
	if err := errors.Join(json.Unmarshal([]byte(olderBinding), &was), json.Unmarshal(raw, &is)); err != nil || !reflect.DeepEqual(was, is) {
		t.Errorf("written %s, %v", raw, err)
	}
}

// What an earlier build would leave out it must not be able to read.
func TestFormatOfBinding(t *testing.T) {
	s := open(t)
	for name, test := range map[string]struct {
		change func(b *Session)
		format int
	}{
		"one environment":  {func(*Session) {}, 1},
		"another one":      {func(b *Session) { b.Places = []Place{{Environment: identity}} }, 2},
		"limits of tools":  {func(b *Session) { b.ToolLimits = &Limits{ReadOnly: true} }, 2},
		"limits of jobs":   {func(b *Session) { b.JobLimits = &Limits{Memory: 1} }, 2},
		"a guard":          {func(b *Session) { b.Guard = json.RawMessage("[]") }, 2},
		"registered tools": {func(b *Session) { b.Plugins = []Plugin{{Name: "x"}} }, 2},
		"packs":            {func(b *Session) { b.Packs = []Pack{{Name: "x"}} }, 2},
		"a broken place":   {func(b *Session) { b.Places = []Place{{Environment: "elsewhere"}} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := session("s-2")
			test.change(&b)
			save(t, s, b)
			got, err := s.Load("s-2")
			var broken *BrokenError
			if test.format == 0 && errors.As(err, &broken) {
				return
			}
			if err != nil || got.Format != test.format {
				t.Errorf("format %d, %v, want %d", got.Format, err, test.format)
			}
		})
	}
}

// What could not be read again is not written, and what was there stays.
func TestTooLargeToRead(t *testing.T) {
	s := open(t)
	b := session("a")
	save(t, s, b)
	b.Guard = json.RawMessage(`"` + strings.Repeat("x", maxRecord) + `"`)
	if err := s.Save(b); err == nil {
		t.Error("it was saved")
	}
	if got, err := s.Load("a"); err != nil || len(got.Guard) > 0 {
		t.Errorf("the binding is %+v, %v", got, err)
	}
}
