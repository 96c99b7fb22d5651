package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// present presents a file and returns what names its export.
func (b *bench) present(path string) presented {
	b.t.Helper()
	r := b.result("present_artifact", args{"path": path})
	if r.IsError || len(r.Content) != 1 || r.Content[0].Type != tool.PartText || r.StructuredContent != nil {
		b.t.Fatalf("present %s: %+v", path, r)
	}
	var p presented
	if err := json.Unmarshal([]byte(r.Content[0].Text), &p); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func TestPresentArtifact(t *testing.T) {
	content := strings.Repeat("0123456789", 100_000)
	b := newBench(t, map[string]string{"dir/report.txt": content, "\xff": ""})
	e := b.o.Exports
	p := b.present("dir/report.txt")
	if p.Name != "report.txt" || p.Size != int64(len(content)) || len(p.Export) < 26 {
		t.Errorf("it is %+v", p)
	}
	if name := b.present("bytes:%FF").Name; name != "bytes:%FF" {
		t.Errorf("the name is %q", name)
	}
	// It is a copy: nothing that happens to the file changes it.
	f, err := os.OpenFile(filepath.Join(b.dir, "dir/report.txt"), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("changed")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		t.Fatal(err)
	}
	r, size, err := e.Open(p.Export)
	if err != nil || size != p.Size {
		t.Fatalf("Open: %d, %v", size, err)
	}
	// A reader that is open outlives the release.
	if err := e.Release(p.Export); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != content {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := errors.Join(r.Close(), r.Close(), e.Release(p.Export)); err != nil {
		t.Error(err)
	}
	if _, _, err := e.Open(p.Export); tool.KindOf(err) != tool.ArtifactNotFound {
		t.Errorf("a released export: %v", err)
	}
	b.refused("is a directory", "present_artifact", args{"path": "dir"})
	b.refused("there is no file", "present_artifact", args{"path": "nothing"})
}

// TestTakenExport: who takes a snapshot uses it up.
func TestTakenExport(t *testing.T) {
	b := newBench(t, map[string]string{"f": "0123456789"})
	e, token := b.o.Exports, b.present("f").Export
	done := 0
	r, err := e.Take(token, func() { done++ })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "0123456789" || err != nil || done != 0 {
		t.Errorf("%q, %v, done %d times", got, err, done)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil || done != 1 {
		t.Errorf("closed: %v, done %d times", err, done)
	}
	if _, err := e.Take(token, func() { done++ }); tool.KindOf(err) != tool.ArtifactNotFound || done != 2 {
		t.Errorf("taken again: %v, done %d times", err, done)
	}
}

func TestExportPieces(t *testing.T) {
	b := newBench(t, map[string]string{"f": "0123456789"})
	e := b.o.Exports
	p := b.present("f")
	var got bytes.Buffer
	for offset := int64(0); ; {
		buf := make([]byte, 4)
		n, err := e.ReadAt(p.Export, buf, offset)
		got.Write(buf[:n])
		offset += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if size, err := e.Size(p.Export); got.String() != "0123456789" || size != 10 || err != nil {
		t.Errorf("%q, %d, %v", got.String(), size, err)
	}
	if _, err := e.ReadAt("nothing", nil, 0); tool.KindOf(err) != tool.ArtifactNotFound {
		t.Errorf("an unknown token: %v", err)
	}
}

func TestExportLimits(t *testing.T) {
	b := newBench(t, map[string]string{"large": "", "small": "x"})
	if err := os.Truncate(filepath.Join(b.dir, "large"), MaxExportBytes+1); err != nil {
		t.Fatal(err)
	}
	b.fails(tool.ArtifactTooLarge, request(t, "present_artifact", args{"path": "large"}))
	var tokens []string
	for range maxExports {
		tokens = append(tokens, b.present("small").Export)
	}
	err := b.fails(tool.Overloaded, request(t, "present_artifact", args{"path": "small"}))
	var e *tool.Error
	if !errors.As(err, &e) || !e.Retryable || e.Hint == "" {
		t.Errorf("it says %+v", e)
	}
	if err := b.o.Exports.Release(tokens[0]); err != nil {
		t.Error(err)
	}
	b.present("small")
	entries, err := os.ReadDir(b.o.Exports.dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("snapshots can be left behind: %v, %v", entries, err)
	}
}

// TestLostExports: what a host that is gone left there keeps nobody from presenting.
func TestLostExports(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synctest.Test(t, func(t *testing.T) {
		e := NewExports(t.TempDir())
		defer e.Close()
		create := func() (string, error) {
			token, _, err := e.Create(t.Context(), file)
			return token, err
		}
		var tokens []string
		for range maxExports {
			token, err := create()
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, token)
		}
		reader, _, err := e.Open(tokens[0])
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lostExport - time.Nanosecond)
		if _, err := create(); tool.KindOf(err) != tool.Overloaded {
			t.Errorf("before anything is lost: %v", err)
		}
		if _, err := e.Size(tokens[1]); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := create(); err != nil {
			t.Errorf("in the place of what was lost: %v", err)
		}
		for i, token := range tokens {
			_, err := e.Size(token)
			if lost := i > 1; lost != (tool.KindOf(err) == tool.ArtifactNotFound) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestExportsClearWhatACrashLeft(t *testing.T) {
	b := newBench(t, map[string]string{"f": "x"})
	dir := b.o.Exports.dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"export-1", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.present("f")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "other" {
		t.Errorf("left are %v, %v", entries, err)
	}
}
