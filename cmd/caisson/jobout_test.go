package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
)

// left is a job that has printed something, and left n files, f/0 and so on.
func left(t *testing.T, n int) (rpc.Services, session.JobResult) {
	t.Helper()
	store, err := artifacts.Open(t.TempDir(), artifacts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := session.JobResult{Stdout: []byte("printed\n")}
	for i := range n {
		text := fmt.Sprintf("text %d", i)
		a, err := store.Publish(t.Context(), artifacts.PublishRequest{SessionID: "s", Name: fmt.Sprint(i), Size: int64(len(text))}, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Artifacts = append(r.Artifacts, session.JobArtifact{Path: fmt.Sprintf("f/%d", i), Artifact: a})
	}
	return rpc.Services{Artifacts: store}, r
}

// writes is a writer that is a function.
type writes func([]byte) (int, error)

func (w writes) Write(b []byte) (int, error) { return w(b) }

// TestSavedFirst: what a job left is saved when its output is printed, though that waits
// for a reader, and though somebody has interrupted it.
func TestSavedFirst(t *testing.T) {
	t.Parallel()
	s, r := left(t, 2)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	printed := 0
	a := &app{errs: io.Discard, out: writes(func(b []byte) (int, error) {
		printed++
		for i := range r.Artifacts {
			if text, err := os.ReadFile(filepath.Join(dir, "f", fmt.Sprint(i))); err != nil || string(text) != fmt.Sprintf("text %d", i) {
				t.Errorf("while %q is printed there is %q, %v", b, text, err)
			}
		}
		return 0, syscall.EPIPE
	})}
	if err := a.handOver(ctx, s, jobFlags{output: dir}, r); err == nil || strings.Contains(err.Error(), "cannot be saved") {
		t.Error(err)
	}
	if printed != 1 {
		t.Errorf("printed %d times", printed)
	}
}

// TestUnsaved: where everything is that cannot be saved is told, however much it is: the
// one place where it is, or each artifact.
func TestUnsaved(t *testing.T) {
	const files, more = 25, "5 others cannot be saved"
	for name, tt := range map[string]struct {
		temporary string
		said      []string
		uris      bool
	}{
		"aside":   {t.TempDir(), []string{more + "; look in "}, false},
		"nowhere": {"/nonexistent", []string{more + "; what is kept:", "artifact/save"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := left(t, files)
			t.Setenv("TMPDIR", tt.temporary)
			t.Setenv("TMP", tt.temporary) // as Windows calls it
			err := save(t.Context(), s, "/nonexistent/out", r.Artifacts)
			if err == nil {
				t.Fatal("nothing is said")
			}
			for _, word := range tt.said {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
			for _, f := range r.Artifacts {
				if strings.Contains(err.Error()+"\n", f.URI+"\n") != tt.uris {
					t.Errorf("it tells of %s: %v", f.URI, err)
				}
			}
			if found, _ := filepath.Glob(filepath.Join(tt.temporary, "caisson-job-*", "f", "*")); !tt.uris && len(found) != files {
				t.Errorf("%d files are there", len(found))
			}
		})
	}
}

// TestOutlast: an interrupt ends what outlasts it a while later, not at once.
func TestOutlast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		lasting, cancel := outlast(ctx, time.Minute)
		defer cancel()
		time.Sleep(time.Hour)
		interrupt()
		time.Sleep(time.Minute - time.Second)
		if lasting.Err() != nil {
			t.Error("it is over already")
		}
		time.Sleep(2 * time.Second)
		if lasting.Err() == nil {
			t.Error("it goes on")
		}
	})
}
