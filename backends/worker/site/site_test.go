//go:build unix

package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve asks the site as the subcommand is asked.
func serve(t *testing.T, r wire.SiteRequest) (wire.SiteReply, error) {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Serve(t.Context(), "the-mark", bytes.NewReader(raw), &out); err != nil {
		t.Fatal(err)
	}
	line, ok := strings.CutPrefix(out.String(), "the-mark\n")
	if !ok || strings.Count(line, "\n") != 1 {
		t.Fatalf("it printed %q", out.String())
	}
	var reply wire.SiteReply
	if err := json.Unmarshal([]byte(line), &reply); err != nil {
		t.Fatal(err)
	}
	return reply, reply.Err()
}

// request is one for an environment of the test's own.
func request(action, parent string) wire.SiteRequest {
	return wire.SiteRequest{Action: action, Directory: parent, Record: wire.SiteRecord{
		Environment: "caisson-0123", Store: "store", Session: "s", Nonce: "n1", Owner: wire.SiteOwner{Host: "h", PID: 1, Start: "s"},
	}}
}

func made(t *testing.T, parent string) wire.SitePlace {
	t.Helper()
	reply, err := serve(t, request(wire.SiteCreate, parent))
	if err != nil || reply.Existed || reply.Place == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	return *reply.Place
}

func wantKind(t *testing.T, what string, err error, want tool.Kind) {
	t.Helper()
	if tool.KindOf(err) != want || err == nil {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func TestLife(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "made", "by", "us")
	p := made(t, parent)
	for _, dir := range []string{parent, p.Directory, p.Workspace, p.State} {
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	if p.Directory != filepath.Join(parent, "caisson-0123") {
		t.Errorf("made %s", p.Directory)
	}
	found, err := serve(t, request(wire.SiteFind, parent))
	if err != nil || *found.Place != p || found.Record.Nonce != "n1" || found.Record.Owner.PID != 1 || found.Record.CreatedAt.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
	again, err := serve(t, request(wire.SiteCreate, parent))
	if err != nil || !again.Existed || again.Record.Nonce != "n1" {
		t.Errorf("made twice: %+v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(p.Workspace, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := request(wire.SiteCreate, parent)
	r.Replace, r.Record.Nonce = "n1", "n2"
	if again, err = serve(t, r); err != nil || again.Existed {
		t.Fatalf("replaced: %+v, %v", again, err)
	}
	if entries, err := os.ReadDir(p.Workspace); err != nil || len(entries) > 0 {
		t.Errorf("the replacement holds %v, %v", entries, err)
	}
	r = request(wire.SiteRemove, parent)
	r.Replace = "n1"
	if _, err := serve(t, r); err == nil {
		t.Error("a later environment was removed in place of an earlier one")
	}
	for range 2 {
		if _, err := serve(t, request(wire.SiteRemove, parent)); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	_, err = serve(t, request(wire.SiteFind, parent))
	wantKind(t, "find what was removed", err, tool.EnvironmentLost)
}

// Nothing is touched that is not proven to be the environment's.
func TestForeign(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"directory": func(t *testing.T, dir string) { check(t, os.Mkdir(dir, 0o700)) },
		"file":      func(t *testing.T, dir string) { check(t, os.WriteFile(dir, nil, 0o600)) },
		"other store": func(t *testing.T, dir string) {
			r := request(wire.SiteCreate, filepath.Dir(dir))
			r.Record.Store = "another"
			_, err := serve(t, r)
			check(t, err)
		},
		"other format": func(t *testing.T, dir string) {
			check(t, os.Mkdir(dir, 0o700))
			check(t, os.WriteFile(filepath.Join(dir, recordName), []byte(`{"format":2,"environment":"caisson-0123","store":"store"}`), 0o600))
		},
		"link": func(t *testing.T, dir string) {
			elsewhere := t.TempDir()
			p := made(t, elsewhere)
			check(t, os.Symlink(p.Directory, dir))
		},
		"pipe for a record": func(t *testing.T, dir string) {
			check(t, os.Mkdir(dir, 0o700))
			check(t, unix.Mkfifo(filepath.Join(dir, recordName), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "caisson-0123")
			prepare(t, dir)
			before := tree(t, dir)
			for _, action := range []string{wire.SiteCreate, wire.SiteFind, wire.SiteRemove} {
				r := request(action, parent)
				r.Replace = "n1"
				_, err := serve(t, r)
				wantKind(t, action, err, tool.BackendUnavailable)
			}
			reply, err := serve(t, request(wire.SiteList, parent))
			if err != nil || len(reply.Found) > 0 {
				t.Errorf("listed %+v, %v", reply.Found, err)
			}
			if after := tree(t, dir); !slices.Equal(before, after) {
				t.Errorf("before %q\nafter %q", before, after)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	check(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	}))
	return all
}

// Directories closed to writing, as module caches are, are removed; what links
// lead to is not.
func TestRemoveClosed(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	p := made(t, parent)
	deep := filepath.Join(p.Workspace, "cache", "module")
	check(t, os.MkdirAll(deep, 0o700))
	check(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o400))
	check(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	check(t, os.Symlink(outside, filepath.Join(deep, "link")))
	check(t, os.Chmod(deep, 0o500))
	check(t, os.Chmod(filepath.Dir(deep), 0o100))
	check(t, os.Chmod(outside, 0o500))
	t.Cleanup(func() { check(t, os.Chmod(outside, 0o700)) })
	if _, err := serve(t, request(wire.SiteRemove, parent)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link led to was changed: %v, %v", info, err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A removal that was cut off can be taken up again.
func TestRemoveAgain(t *testing.T) {
	parent := t.TempDir()
	p := made(t, parent)
	check(t, os.RemoveAll(p.Workspace))
	check(t, os.Remove(filepath.Join(p.Directory, lockName)))
	_, err := serve(t, request(wire.SiteFind, parent))
	wantKind(t, "find what was partly removed", err, tool.EnvironmentLost)
	if _, err := serve(t, request(wire.SiteRemove, parent)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A directory that was never completed is listed and can be removed.
func TestUnfinished(t *testing.T) {
	parent := t.TempDir()
	p := made(t, parent)
	name := unfinished + "00ff"
	check(t, os.Rename(p.Directory, filepath.Join(parent, name)))
	reply, err := serve(t, request(wire.SiteList, parent))
	if err != nil || len(reply.Found) != 1 || reply.Found[0].Name != name {
		t.Fatalf("%+v, %v", reply, err)
	}
	r := request(wire.SiteRemove, parent)
	r.Name = name
	if _, err := serve(t, r); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"..", "caisson-0123", unfinished + "/.."} {
		r.Name = bad
		_, err := serve(t, r)
		wantKind(t, bad, err, tool.InvalidParams)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// While a worker lives, or is coming, the idle end of another one removes nothing.
func TestLeave(t *testing.T) {
	parent := t.TempDir()
	p := made(t, parent)
	lock, err := endpoint.Acquire(t.Context(), worker.LockPath(p.State, "other"))
	check(t, err)
	check(t, Leave(t.Context(), p.Directory))
	if reply, err := serve(t, request(wire.SiteList, parent)); err != nil || len(reply.Found) != 1 || !reply.Found[0].Live {
		t.Fatalf("%+v, %v", reply, err)
	}
	release, err := Enter(t.Context(), p.Directory)
	check(t, err)
	check(t, lock.Unlock())
	left := make(chan error, 1)
	go func() { left <- Leave(t.Context(), p.Directory) }()
	// Whoever is coming has come before the lock is free.
	if lock, err = endpoint.Acquire(t.Context(), worker.LockPath(p.State, "coming")); err != nil {
		t.Fatal(err)
	}
	check(t, release())
	check(t, <-left)
	if _, err := serve(t, request(wire.SiteFind, parent)); err != nil {
		t.Fatal(err)
	}
	check(t, lock.Unlock())
	check(t, Leave(t.Context(), p.Directory))
	check(t, Leave(t.Context(), p.Directory))
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	_, err = Enter(t.Context(), p.Directory)
	wantKind(t, "enter what is gone", err, tool.EnvironmentLost)
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("made by entering: %v, %v", entries, err)
	}
}

// An environment whose worker does not end, or what a dead one left, stays as it is: by
// removal, by replacement and by the idle end of another worker.
func TestKeptWhenNotEnded(t *testing.T) {
	t.Parallel() // it waits more than it works
	removal := func(t *testing.T, parent, _ string) error {
		t.Helper()
		r := request(wire.SiteRemove, parent)
		r.ShutdownMS = 1
		_, err := serve(t, r)
		return err
	}
	for name, test := range map[string]struct {
		// stuck has something not end; free undoes it.
		stuck func(t *testing.T, p wire.SitePlace) (free func() error)
		end   func(t *testing.T, parent, dir string) error
	}{
		"a worker that lives on": {liveWorker, removal},
		"a worker that lives on, replaced": {liveWorker, func(t *testing.T, parent, _ string) error {
			t.Helper()
			r := request(wire.SiteCreate, parent)
			r.Replace, r.ShutdownMS = "n1", 1
			_, err := serve(t, r)
			return err
		}},
		"what a dead one left": {unsettled, removal},
		"what a dead one left, after the idle end of another": {unsettled, func(t *testing.T, _, dir string) error {
			t.Helper()
			return Leave(t.Context(), dir)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			p := made(t, parent)
			check(t, os.WriteFile(filepath.Join(p.Workspace, "evidence"), nil, 0o600))
			free := test.stuck(t, p)
			before := tree(t, parent)
			if err := test.end(t, parent, p.Directory); err == nil || !strings.Contains(err.Error(), "session stuck") {
				t.Errorf("it ends with %v", err)
			}
			if after := tree(t, parent); !slices.Equal(before, after) {
				t.Errorf("before %q\nafter %q", before, after)
			}
			check(t, free())
			if _, err := serve(t, request(wire.SiteRemove, parent)); err != nil {
				t.Errorf("when it has ended: %v", err)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// liveWorker is a worker that nobody can tell to end.
func liveWorker(t *testing.T, p wire.SitePlace) func() error {
	t.Helper()
	lock, err := endpoint.Acquire(t.Context(), worker.LockPath(p.State, "stuck"))
	check(t, err)
	return lock.Unlock
}

// unsettled is the registry of a dead worker that cannot be read.
func unsettled(t *testing.T, p wire.SitePlace) func() error {
	t.Helper()
	registry := filepath.Join(worker.SessionDir(p.State, "stuck"), "processes")
	check(t, os.MkdirAll(filepath.Dir(registry), 0o700))
	check(t, os.WriteFile(registry, nil, 0o600))
	return func() error { return os.Remove(registry) }
}

// Who waits to enter while the environment is removed learns that it is gone.
func TestEnterRemoved(t *testing.T) {
	parent := t.TempDir()
	p := made(t, parent)
	lock, err := endpoint.AcquireExisting(t.Context(), filepath.Join(p.Directory, lockName))
	check(t, err)
	entered := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := Enter(ctx, p.Directory)
		entered <- err
	}()
	check(t, clearAway(p.Directory))
	check(t, lock.Unlock())
	wantKind(t, "enter", <-entered, tool.EnvironmentLost)
}

// Whoever looks at a directory while it is removed finds it as it was, or gone.
func TestLookedAtWhileRemoved(t *testing.T) {
	for range 100 {
		p := made(t, t.TempDir())
		seen := make(chan error, 1)
		go func() {
			for {
				if _, err := readRecord(p.Directory); err != nil {
					seen <- err
					return
				}
			}
		}()
		check(t, clearAway(p.Directory))
		if err := <-seen; !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func TestLongPath(t *testing.T) {
	dir := filepath.Join("/", strings.Repeat("long/", 30), "caisson-0123")
	s := sockets(dir)
	if len(endpoint.SocketPath(s, "s")) > endpoint.MaxSocketPath || strings.HasPrefix(s, dir) || s != sockets(dir) {
		t.Errorf("the sockets lie in %s", s)
	}
	if short := sockets("/srv/caisson-0123"); short != "/srv/caisson-0123/run" {
		t.Errorf("the sockets lie in %s", short)
	}
}

func TestProve(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "a", "b")
	reply, err := serve(t, wire.SiteRequest{Action: wire.SiteProve, Directory: parent})
	if err != nil || reply.Facts == nil || reply.Facts.Writable.Error != "" {
		t.Fatalf("%+v, %v", reply.Facts, err)
	}
	if runtime.GOOS == "linux" && (reply.Facts.Confined.Error == "") != (reply.Facts.Landlock >= 3) {
		t.Errorf("%+v", reply.Facts)
	}
	if _, err := os.Stat(filepath.Dir(parent)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what was made for the proof is left")
	}
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	reply, err = serve(t, wire.SiteRequest{Action: wire.SiteProve, Directory: filepath.Join(file, "below")})
	if err != nil || reply.Facts.Writable.Error == "" || reply.Facts.Writable.Hint == "" {
		t.Errorf("%+v, %v", reply.Facts, err)
	}
}

func TestRequests(t *testing.T) {
	for name, r := range map[string]wire.SiteRequest{
		"relative":       {Action: wire.SiteList, Directory: "relative"},
		"no environment": {Action: wire.SiteCreate, Directory: t.TempDir()},
		"a path":         {Action: wire.SiteRemove, Directory: t.TempDir(), Record: wire.SiteRecord{Environment: "../x", Store: "s"}},
		"no store":       {Action: wire.SiteRemove, Directory: t.TempDir(), Record: wire.SiteRecord{Environment: "x"}},
		"install a path": {Action: wire.SiteInstall, Name: "../x"},
	} {
		_, err := serve(t, r)
		wantKind(t, name, err, tool.InvalidParams)
	}
	_, err := serve(t, wire.SiteRequest{Action: "fly", Directory: "/", Record: wire.SiteRecord{Environment: "x", Store: "s"}})
	wantKind(t, "an unknown action", err, tool.Unsupported)
	_, err = serve(t, wire.SiteRequest{Action: wire.SiteList, Directory: "/", Sum: strings.Repeat("0", 64)})
	wantKind(t, "another program", err, tool.ProtocolMismatch)
	for _, in := range []string{"", "[]", `{"action":`, strings.Repeat(" ", maxRequest+1)} {
		var out bytes.Buffer
		if err := Serve(t.Context(), "", strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"kind":"invalidParams"`) {
			t.Errorf("%.20q: %s", in, out.String())
		}
	}
}

// Old builds go, but for those that are used, and what is none.
func TestSweep(t *testing.T) {
	self, err := os.Executable()
	check(t, err)
	if _, err := serve(t, wire.SiteRequest{Action: wire.SiteSweep}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(self); err != nil {
		t.Fatal("it swept outside of its own place")
	}
	parent := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"v1-0123456789abcdef", "v2-0123456789abcdef", "other", "v3-0123456789abcdef"} {
		check(t, os.Mkdir(filepath.Join(parent, name), 0o700))
		if name != "v2-0123456789abcdef" {
			check(t, os.Chtimes(filepath.Join(parent, name), old, old))
		}
	}
	own := filepath.Join(parent, "v3-0123456789abcdef")
	for name, age := range map[string]time.Duration{"caisson": 2 * staleUpload, uploadPrefix + "old": 2 * staleUpload, uploadPrefix + "new": 0} {
		path := filepath.Join(own, name)
		check(t, os.WriteFile(path, nil, 0o700))
		check(t, os.Chtimes(path, time.Now(), time.Now().Add(-age)))
	}
	for _, dryRun := range []bool{true, false} {
		reply, err := sweepBeside(own, time.Minute, dryRun)
		if want := []string{filepath.Join(parent, "v1-0123456789abcdef")}; err != nil || !slices.Equal(reply.Swept, want) {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 3 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if entries, err = os.ReadDir(own); err != nil || len(entries) != 2 || entries[0].Name() != uploadPrefix+"new" {
		t.Errorf("left of uploads: %v, %v", entries, err)
	}
}

// Where there is no /proc the error says so, and no fault of the worker's.
func TestUnknownProgram(t *testing.T) {
	dir := t.TempDir()
	kind, says := tool.Unsupported, "there is no /proc"
	if runtime.GOOS != "linux" {
		kind, says = tool.Internal, "own program"
	}
	if err := unknownProgram(filepath.Join(dir, "self"), fs.ErrNotExist); tool.KindOf(err) != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("without /proc: %v", err)
	}
	if err := unknownProgram(dir, fs.ErrPermission); tool.KindOf(err) != tool.Internal || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with it: %v", err)
	}
}
