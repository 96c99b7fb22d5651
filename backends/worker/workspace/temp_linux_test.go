package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// leftBehind makes a complete file of a writer whose lock is held for as long
// as the returned file is open.
func leftBehind(t *testing.T, r *Root, name string) *os.File {
	t.Helper()
	parent, err := r.openRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	tmp, err := (&writer{parent: parent, data: []byte("whole")}).temp(0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tmp.dir.Close()
	if err := errors.Join(lock(tmp.f), tmp.link(name)); err != nil {
		t.Fatal(err)
	}
	return tmp.f
}

// What a killed writer left goes with the next Root's first write into the
// directory; what is still being written stays, and so does what is not ours.
func TestSweep(t *testing.T) {
	r := open(t, map[string]string{"dir/file": "old", lockedPrefix + "dir/x": "x"})
	dead, alive, others := lockedPrefix+"dead", lockedPrefix+"alive", namedPrefix+"other"
	if err := leftBehind(t, r, dead).Close(); err != nil {
		t.Fatal(err)
	}
	defer leftBehind(t, r, alive).Close()
	for _, name := range []string{others, ".caisson-mine"} {
		if err := os.WriteFile(filepath.Join(r.Dir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(t, "dir/file", filepath.Join(r.Dir(), lockedPrefix+"link"))
	if _, err := r.Write("dir/file", []byte("new"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lstat(dead); err != nil {
		t.Errorf("a write elsewhere swept it: %v", err)
	}
	if _, err := r.Write("file", []byte("new"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lstat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the dead writer left: %v", err)
	}
	for _, name := range []string{alive, others, ".caisson-mine", lockedPrefix + "link", lockedPrefix + "dir/x"} {
		if _, err := r.Lstat(name); err != nil {
			t.Errorf("%s was swept: %v", name, err)
		}
	}
}

// Where a file gets no name after it was written, it is written with one.
func TestNamed(t *testing.T) {
	for _, o := range []WriteOptions{{}, {CreateOnly: true}} {
		r := open(t, map[string]string{"old": "old"})
		parent, err := r.openRoot(".")
		if err != nil {
			t.Fatal(err)
		}
		defer parent.Close()
		for _, base := range []string{"new", "old"} {
			if base == "old" && o.CreateOnly {
				continue
			}
			w := writer{parent: parent, base: base, data: []byte("text"), options: o, named: true}
			if err := w.write(); err != nil {
				t.Errorf("%s: %v", base, err)
			}
			if got, err := os.ReadFile(filepath.Join(r.Dir(), base)); err != nil || string(got) != "text" {
				t.Errorf("%s holds %q, %v", base, got, err)
			}
		}
		noTemp(t, r)
	}
}

// The writer is killed again and again while it writes: each file is the old or
// the new one, and the next writer leaves nothing beside them.
func TestKilledWriter(t *testing.T) {
	const writes = "CAISSON_TEST_WRITES"
	old, young := strings.Repeat("old\n", 1<<18), strings.Repeat("new\n", 1<<18)
	if dir := os.Getenv(writes); dir != "" {
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("begun\n")
		for {
			for _, text := range []string{young, old} {
				if _, err := r.Write("file", []byte(text), WriteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	r := open(t, map[string]string{"file": old})
	for range 20 {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledWriter$")
		cmd.Env = append(os.Environ(), writes+"="+r.Dir())
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if got, err := os.ReadFile(filepath.Join(r.Dir(), "file")); err != nil || string(got) != old && string(got) != young {
			t.Fatalf("the file holds %d bytes, %v", len(got), err)
		}
	}
	again, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Write("other", nil, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	noTemp(t, again)
}
