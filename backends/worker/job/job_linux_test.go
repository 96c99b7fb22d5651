package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a session that runs jobs.
type rig struct {
	*testing.T
	runner    *Runner
	root, dir string
	exports   *tools.Exports
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{T: t, root: t.TempDir()}
	state := t.TempDir()
	r.dir = filepath.Join(state, "jobs")
	root, err := workspace.Open(r.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	m, err := process.NewManager(process.Options{
		StateDir: state, Session: "s", Root: r.root, Env: os.Environ(), DefaultMode: tool.Unconfined, Ceiling: tool.Unconfined,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	r.exports = tools.NewExports(filepath.Join(state, "exports"))
	t.Cleanup(func() { r.exports.Close() })
	o := Options{Root: root, Commands: m, Exports: r.exports, Dir: r.dir}
	if change != nil {
		change(&o)
	}
	r.runner = New(o)
	return r
}

func (r *rig) run(q tool.JobRequest) tool.JobResult {
	r.Helper()
	result, err := r.runner.Run(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	return result
}

func sh(lines ...string) tool.JobRequest {
	return tool.JobRequest{Script: &tool.JobScript{Interpreter: "/bin/sh", Source: strings.Join(lines, "\n")}}
}

func paths(files []tool.JobFile) []string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path)
	}
	return all
}

// nothing checks that no job has left anything.
func (r *rig) nothing() {
	r.Helper()
	for _, dir := range []string{r.dir, filepath.Join(r.root, ".caisson-jobs")} {
		if entries, err := os.ReadDir(dir); err == nil {
			r.Errorf("%s is left with %v", dir, entries)
		}
	}
}

// TestWherePrograms: a job's directory is where programs can be executed, and that
// is the workspace where it must be.
func TestWherePrograms(t *testing.T) {
	for name, c := range map[string]struct {
		noexec []string
		want   string
	}{
		"anywhere":            {want: "state"},
		"not in the state":    {noexec: []string{"state"}, want: "workspace"},
		"nowhere":             {noexec: []string{"state", "workspace"}, want: "state"},
		"not in the workpace": {noexec: []string{"workspace"}, want: "state"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) {
				root := o.Root.Dir()
				o.NoExec = func(dir string) bool {
					where := "state"
					if dir == root || strings.HasPrefix(dir, root+"/") {
						where = "workspace"
					}
					return slices.Contains(c.noexec, where)
				}
			})
			q := tool.JobRequest{
				Argv:   []string{"./bin/prog"},
				Inputs: []tool.JobInput{{Path: "bin/prog", Data: []byte("#!/bin/sh\npwd; echo x > left\n")}},
			}
			got := r.run(q)
			in := "state"
			if strings.HasPrefix(string(got.Stdout), r.root+"/") {
				in = "workspace"
			}
			if in != c.want || !slices.Equal(paths(got.Files), []string{"left"}) {
				t.Errorf("it ran in the %s: %+v", in, got)
			}
			r.nothing()
		})
	}
}

// TestLeftovers: what a worker that died has left is removed by the next one, and
// nothing that a living one has.
func TestLeftovers(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	held := map[string]*endpoint.Lock{}
	names := map[string]string{"dead": newName(), "live": newName(), "old": newName(), "new": newName()}
	for _, parent := range []string{filepath.Join(state, "jobs"), filepath.Join(root, ".caisson-jobs")} {
		for _, name := range append(slices.Collect(maps.Values(names)), "somebody-else's") {
			dir := filepath.Join(parent, name)
			if err := os.MkdirAll(filepath.Join(dir, "job", "work", "locked"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "job", "work", "locked", "f"), nil, 0o400); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "job", "work", "locked"), 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"dead", "live"} {
			lock, err := endpoint.Acquire(t.Context(), filepath.Join(parent, names[name], lockFile))
			if err != nil {
				t.Fatal(err)
			}
			if name == "live" {
				held[parent] = lock
			} else if err := lock.Unlock(); err != nil {
				t.Fatal(err)
			}
		}
		long := time.Now().Add(-2 * unlockedAge)
		for _, name := range []string{names["old"], "somebody-else's"} {
			if err := os.Chtimes(filepath.Join(parent, name), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	open, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	New(Options{Root: open, Dir: filepath.Join(state, "jobs")})
	for parent, lock := range held {
		entries, err := os.ReadDir(parent)
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		want := []string{names["live"], names["new"], "somebody-else's"}
		if slices.Sort(want); err != nil || !slices.Equal(left, want) {
			t.Errorf("%s has %q, want %q, %v", parent, left, want, err)
		}
		in, err := workspace.OpenDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range left {
			err = errors.Join(err, workspace.RemoveAll(in, name))
		}
		if err := errors.Join(err, in.Close(), lock.Unlock()); err != nil {
			t.Error(err)
		}
	}
}

// TestPlantedDirectories: what lies in the workspace in the place of jobs' directories
// leads nobody to other files.
func TestPlantedDirectories(t *testing.T) {
	victim := t.TempDir()
	name := newName()
	if err := os.MkdirAll(filepath.Join(victim, name, "precious"), 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * unlockedAge)
	if err := os.Chtimes(filepath.Join(victim, name), long, long); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *Options) {
		if err := os.Symlink(victim, filepath.Join(o.Root.Dir(), ".caisson-jobs")); err != nil {
			t.Fatal(err)
		}
		state := o.Dir
		o.NoExec = func(dir string) bool { return strings.HasPrefix(dir, state) }
	})
	got := r.run(tool.JobRequest{Argv: []string{"pwd"}})
	if !strings.HasPrefix(string(got.Stdout), r.dir) {
		t.Errorf("it ran in %s", got.Stdout)
	}
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("elsewhere there is %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(victim, name, "precious")); err != nil {
		t.Error(err)
	}
}

// TestRemoval: a job that locks its directories, or has many of them, is removed
// all the same.
func TestRemoval(t *testing.T) {
	r := newRig(t, nil)
	got := r.run(sh(`mkdir -p a/b/c && echo x > a/b/c/f && chmod 0 a/b/c/f && chmod 500 a/b/c && chmod 0 a/b && ln -s / root`,
		`mkdir -p "$TMPDIR/x/y" && chmod 500 "$TMPDIR/x"`))
	if got.ExitCode != 0 {
		t.Errorf("%+v", got)
	}
	r.nothing()
}

// TestCollection: what comes back was in the directory and is a file; all else is
// left out or counted.
func TestCollection(t *testing.T) {
	r := newRig(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := sh(`echo x > plain && ln -s plain inside && ln -s `+secret+` outside && ln -s `+filepath.Dir(secret)+` dir && mkfifo pipe && mkdir empty`,
		`printf 'x' > "$(printf 'not-\377-text')"`, `echo changed > in`, `echo new > script.sh.bak`)
	q.Inputs = []tool.JobInput{{Path: "in", Data: []byte("in")}}
	for _, globs := range [][]string{nil, {"**"}, {"*"}, {"*", "./*", "**/*"}} {
		q.Collect = globs
		got := r.run(q)
		if want := []string{"bytes:not-%FF-text", "plain", "script.sh.bak"}; !slices.Equal(paths(got.Files), want) || got.FilesDropped != 0 {
			t.Errorf("%q collects %q and drops %d, want %q", globs, paths(got.Files), got.FilesDropped, want)
		}
		for _, f := range got.Files {
			if err := r.exports.Release(f.Token); err != nil {
				t.Error(err)
			}
		}
	}
	q = sh(`i=0; while [ $i -lt 110 ]; do mkdir d && cd d && : > f; i=$((i+1)); done`)
	got := r.run(q)
	if n := len(got.Files); n < 100 || n > 101 || got.FilesDropped != 1 {
		t.Errorf("of 110 files in 110 directories %d came, %d dropped", n, got.FilesDropped)
	}
	if got := r.run(sh(`mkdir d d.d; : > d/x; : > d.d/x; : > d.x; : > d-x`)); !slices.Equal(paths(got.Files), []string{"d-x", "d.d/x", "d.x", "d/x"}) {
		t.Errorf("the order is %q", paths(got.Files))
	}
	got = r.run(sh(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do : > f$i; i=$((i+1)); done; : > a; chmod 0 f0`, maxFiles+3)))
	if n := len(got.Files); n != maxFiles || got.FilesDropped != 4 {
		t.Errorf("of %d files %d came, %d dropped", maxFiles+4, n, got.FilesDropped)
	}
	r.nothing()
}

// TestEntries: no more entries are looked at, and held, than there is room for in
// all directories together.
func TestEntries(t *testing.T) {
	r := newRig(t, nil)
	root, err := os.OpenRoot(r.root)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"a/a", "a/b", "a/c/d", "b", "c"} {
		if err := write(root, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ room, files, dropped int }{{7, 5, 0}, {6, 4, 1}, {3, 2, 1}} {
		all := collector{exports: r.exports, root: root, room: c.room}
		files, dropped, err := all.collect(t.Context())
		if err != nil || len(files) != c.files || dropped != c.dropped {
			t.Errorf("with room for %d: %q, %d dropped, %v; want %+v", c.room, paths(files), dropped, err, c)
		}
	}
}

// TestGuardedFiles: a job in the workspace neither replaces nor brings back what tools
// leave alone, by whatever link, unless it runs in the mode unconfined.
func TestGuardedFiles(t *testing.T) {
	r := newRig(t, nil)
	if err := errors.Join(os.Mkdir(filepath.Join(r.root, ".ssh"), 0o700), os.Symlink(".ssh", filepath.Join(r.root, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cwd, line string
		mode      tool.Mode
		files     []string
	}{
		{"link", `: > plain; : > .env; : > ../key.pem`, tool.Standard, nil},
		{"link", `:`, tool.Unconfined, []string{".env", "plain"}},
		{".", `: > .ssh.txt`, tool.Standard, []string{".ssh.txt"}},
	} {
		q := sh(c.line)
		q.CWD, q.Mode, q.Collect = c.cwd, c.mode, []string{"**"}
		got := r.run(q)
		if !slices.Equal(paths(got.Files), c.files) || (got.FilesDropped > 0) != (c.mode == tool.Standard) {
			t.Errorf("%+v: %q, %d dropped", c, paths(got.Files), got.FilesDropped)
		}
	}
	q := tool.JobRequest{Argv: []string{"true"}, CWD: ".", Mode: tool.Standard, Inputs: []tool.JobInput{{Path: ".env", Data: []byte("mine")}}}
	if _, err := r.runner.Run(t.Context(), q); tool.KindOf(err) != tool.Denied {
		t.Errorf("an input that replaces a guarded file: %v", err)
	}
	q.Mode = tool.Unconfined
	r.run(q)
	q.Mode = tool.Standard
	if err := os.Symlink("circle", filepath.Join(r.root, "circle")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"missing", "circle", strings.Repeat("long", 100)} {
		q.CWD = dir
		_, err := r.runner.Run(t.Context(), q)
		if e, _ := errors.AsType[*tool.Error](err); e == nil || e.Kind != tool.InvalidParams || e.Hint == "" {
			t.Errorf("%s as the directory: %v", dir, err)
		}
	}
	q.CWD = ""
	r.run(q)
	r.nothing()
}

// TestGivenIsQuoted: what a job was given stands in an error only where that quotes it:
// logs leave out what is quoted, and a line of a log is one line.
func TestGivenIsQuoted(t *testing.T) {
	r := newRig(t, nil)
	const given = "given\nname"
	long := strings.Repeat(given, 100)
	for name, q := range map[string]tool.JobRequest{
		"an input that is too long":         {Inputs: []tool.JobInput{{Path: long}}},
		"an input in the workspace":         {Inputs: []tool.JobInput{{Path: long}}, CWD: "."},
		"an input where a directory is":     {Inputs: []tool.JobInput{{Path: given}}, CWD: "."},
		"a directory that is not there":     {CWD: given + "/no"},
		"a directory that is no name":       {CWD: long},
		"a program that is not there":       {Argv: []string{given}},
		"a program that cannot be run":      {Argv: []string{"./" + given}, Inputs: []tool.JobInput{{Path: given, Data: []byte("\x7fELF")}}},
		"a program that has no interpreter": {Argv: []string{"./" + given}, Inputs: []tool.JobInput{{Path: given, Data: []byte("#!/" + "no-such\n")}}},
		"a variable that is none":           {Environment: map[string]string{given: "\x00"}},
		"an interpreter that is not there":  {Script: &tool.JobScript{Interpreter: given}},
	} {
		t.Run(name, func(t *testing.T) {
			if q.Argv == nil && q.Script == nil {
				q.Argv = []string{"true"}
			}
			if strings.Contains(name, "where a directory is") {
				if err := os.Mkdir(filepath.Join(r.root, given), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := r.runner.Run(t.Context(), q)
			if err == nil {
				t.Fatal("it has run")
			}
			if rest := quotes.ReplaceAllString(err.Error(), ""); strings.Contains(rest, "given") || strings.Contains(rest, "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

// quotes is what an error quotes, as logs know it.
var quotes = regexp.MustCompile("`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\"")

// TestScriptsAndVariables: the script disturbs no input, is beside them for those
// who import, and Python leaves nothing.
func TestScriptsAndVariables(t *testing.T) {
	r := newRig(t, nil)
	q := sh(`echo "$0"; cat script.sh job-script.sh/x; echo "$PYTHONDONTWRITEBYTECODE"`)
	q.Inputs = []tool.JobInput{{Path: "script.sh", Data: []byte("mine\n")}, {Path: "job-script.sh/x", Data: []byte("mine too\n")}}
	got := r.run(q)
	lines := strings.Split(string(got.Stdout), "\n")
	if !strings.HasSuffix(lines[0], "/work/job-job-script.sh") || !slices.Equal(lines[1:4], []string{"mine", "mine too", "1"}) || len(got.Files) != 0 {
		t.Errorf("%+v", got)
	}
	q.Environment = map[string]string{"PYTHONDONTWRITEBYTECODE": ""}
	if got := r.run(q); !strings.HasSuffix(string(got.Stdout), "mine too\n\n") {
		t.Errorf("a variable of the job's own: %q", got.Stdout)
	}
	for interpreter, want := range map[string]string{"/usr/bin/python3": "script.py", "node": "script.js", "bash": "script.sh", "awk": "script"} {
		if got := scriptName(tool.JobRequest{Script: &tool.JobScript{Interpreter: interpreter}}); got != want {
			t.Errorf("a script for %s is called %s", interpreter, got)
		}
	}
	r.nothing()
}

// TestSnapshots: what was collected is what it was when the job ended.
func TestSnapshots(t *testing.T) {
	r := newRig(t, nil)
	q := sh(`echo then > kept`)
	q.CWD, q.Collect = ".", []string{"kept"}
	got := r.run(q)
	if err := os.WriteFile(filepath.Join(r.root, "kept"), []byte("later"), 0o600); err != nil {
		t.Fatal(err)
	}
	content, size, err := r.exports.Open(got.Files[0].Token)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if data, err := io.ReadAll(content); string(data) != "then\n" || size != 5 || err != nil {
		t.Errorf("the snapshot is %q, %v", data, err)
	}
}

// TestCancelled: a job that is cancelled while it runs, or while its files are
// collected, leaves no snapshot and no directory.
func TestCancelled(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(r.root, "started")
	ended := make(chan error, 1)
	go func() {
		_, err := r.runner.Run(ctx, sh(`echo x > left; : > `+started+`; sleep 600`))
		ended <- err
	}()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(started); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	cancel()
	if err := <-ended; tool.KindOf(err) != tool.Cancelled {
		t.Errorf("it ended with %v", err)
	}
	r.nothing()

	if err := os.WriteFile(filepath.Join(r.root, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c := collector{exports: r.exports, root: root, room: maxEntries}
	c.walk(t.Context(), ".", 0)
	if len(c.files) == 0 {
		t.Fatal("nothing is collected")
	}
	token := c.files[0].Token
	if files, _, err := c.collect(ctx); tool.KindOf(err) != tool.Cancelled || files != nil {
		t.Errorf("a cancelled collection: %v, %v", files, err)
	}
	if _, err := r.exports.Size(token); tool.KindOf(err) != tool.ArtifactNotFound {
		t.Errorf("its snapshots are left: %v", err)
	}
}
