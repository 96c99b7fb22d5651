package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	r := open(t, map[string]string{"file": "old", "dir/x": "x"})
	at := func(name string) string { return filepath.Join(r.Dir(), name) }
	link(t, "file", at("link"))
	link(t, at("dir/x"), at("abs"))
	link(t, "fresh", at("dangling"))
	link(t, at("dir"), at("absdir"))
	for _, row := range []struct{ name, lands string }{
		{"file", "file"}, {"new", "new"}, {"a/b/c/new", "a/b/c/new"}, {"link", "file"}, {"abs", "dir/x"}, {"dangling", "fresh"},
		{"absdir/y", "dir/y"}, {"absdir/deep/z", "dir/deep/z"}, {"dir/\xff\n", "dir/\xff\n"}, {strings.Repeat("n", 255), strings.Repeat("n", 255)},
	} {
		info, err := r.Write(row.name, []byte("to "+row.name), WriteOptions{})
		if err != nil {
			t.Errorf("%q: %v", row.name, err)
			continue
		}
		b, err := os.ReadFile(at(row.lands))
		if err != nil || string(b) != "to "+row.name || info.Size() != int64(len(b)) {
			t.Errorf("%q: %q, %v", row.lands, b, err)
		}
	}
	for _, name := range []string{"link", "abs", "dangling", "absdir"} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", name, err)
		}
	}
	for name, want := range map[string]error{"dir": syscall.EISDIR, ".": syscall.EISDIR, "file/x": syscall.ENOTDIR} {
		if _, err := r.Write(name, nil, WriteOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	noTemp(t, r)
}

// noTemp checks that no write has left anything behind.
func noTemp(t *testing.T, r *Root) {
	t.Helper()
	err := filepath.WalkDir(r.Dir(), func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), lockedPrefix) || strings.HasPrefix(d.Name(), namedPrefix) {
			t.Errorf("%s is left", p)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCreateOnly(t *testing.T) {
	r := open(t, map[string]string{"file": "old"})
	link(t, "nothing", filepath.Join(r.Dir(), "dangling"))
	for _, name := range []string{"file", "dangling", "."} {
		if _, err := r.Write(name, []byte("new"), WriteOptions{CreateOnly: true}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Of many that try at once, one wins, whole.
	var group sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		group.Go(func() {
			_, err := r.Write("race", bytes.Repeat([]byte{byte('a' + i)}, 1<<16), WriteOptions{CreateOnly: true})
			if err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("race: %v", err)
			}
		})
	}
	group.Wait()
	b, err := os.ReadFile(filepath.Join(r.Dir(), "race"))
	if err != nil || won != 1 || len(b) != 1<<16 || !bytes.Equal(b, bytes.Repeat(b[:1], 1<<16)) {
		t.Errorf("%d won, %d bytes, %v", won, len(b), err)
	}
	noTemp(t, r)
}

func TestSeen(t *testing.T) {
	r := open(t, map[string]string{"file": "old"})
	info, err := r.Stat("file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write("file", []byte("somebody else's"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write("file", []byte("mine"), WriteOptions{Seen: info}); !errors.Is(err, ErrChanged) {
		t.Errorf("a changed file: %v", err)
	}
	if err := os.Remove(filepath.Join(r.Dir(), "file")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write("file", []byte("mine"), WriteOptions{Seen: info}); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestReadersSeeWholeFiles reads a file while it is written.
func TestReadersSeeWholeFiles(t *testing.T) {
	r := open(t, map[string]string{"file": strings.Repeat("0", 100_000)})
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := r.Write("file", bytes.Repeat([]byte{'0' + byte(i%10)}, 100_000), WriteOptions{}); err != nil {
				t.Errorf("write: %v", err)
			}
		}
	})
	for range 200 {
		b, err := os.ReadFile(filepath.Join(r.Dir(), "file"))
		if err != nil || len(b) != 100_000 || !bytes.Equal(b, bytes.Repeat(b[:1], len(b))) {
			t.Errorf("%d bytes, %v", len(b), err)
			break
		}
	}
	close(stop)
	group.Wait()
}

// TestTwoWriters: of changes that two workspaces make to one file at once, as two
// sessions in one folder do, none is lost.
func TestTwoWriters(t *testing.T) {
	first := open(t, map[string]string{"file": ""})
	second, err := Open(first.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	const changes = 200
	add := func(r *Root, what byte) error {
		f, info, err := r.Open("file")
		if err != nil {
			return err
		}
		defer f.Close() // until then no other file is mistaken for this one
		content, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		_, err = r.Write("file", append(content, what), WriteOptions{Seen: info})
		return err
	}
	var both sync.WaitGroup
	for i, r := range []*Root{first, second} {
		both.Go(func() {
			for made := 0; made < changes; {
				switch err := add(r, "ab"[i]); {
				case err == nil:
					made++
				case !errors.Is(err, ErrChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	both.Wait()
	got, err := read(t, first, "file")
	if a, b := strings.Count(got, "a"), strings.Count(got, "b"); err != nil || a != changes || b != changes {
		t.Errorf("of %d changes of each, %d and %d are there: %v", changes, a, b, err)
	}
	noTemp(t, first)
}
