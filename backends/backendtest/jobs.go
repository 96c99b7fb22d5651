package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

func jobTests() []test {
	return []test{
		{name: "Jobs", needs: needJobs | needShell, run: testJobs},
		{name: "JobOutputs", needs: needJobs | needShell, run: testJobOutputs},
		{name: "JobRefusals", needs: needJobs, run: testJobRefusals},
		{name: "JobsEnd", needs: needJobs | needShell, run: testJobsEnd},
		{name: "JobLimits", needs: needJobs | needShell, run: testJobLimits},
		{name: "JobsInTheWorkspace", needs: needJobs | needShell, run: testJobsInTheWorkspace},
		{name: "JobConfinement", needs: needJobs | needShell | needLandlock, closed: true, run: testJobConfinement},
	}
}

// tryJob runs a job.
func (w *world) tryJob(ctx context.Context, r backends.JobRequest) (backends.JobResult, error) {
	w.Helper()
	runner, ok := w.env.(backends.JobRunner)
	if !ok {
		w.Fatal("the environment runs no jobs")
	}
	r.ID = "job-" + random(6)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return runner.RunJob(ctx, r)
}

// job runs a job, which must come to a result.
func (w *world) job(r backends.JobRequest) backends.JobResult {
	w.Helper()
	result, err := w.tryJob(w.Context(), r)
	if err != nil {
		w.Fatalf("job: %v", describe(err))
	}
	return result
}

// shell is a job of a script for the shell.
func shell(lines ...string) backends.JobRequest {
	return backends.JobRequest{Script: &backends.JobScript{Interpreter: "sh", Source: strings.Join(lines, "\n") + "\n"}}
}

// fetch takes all files of a result, by path.
func (w *world) fetch(r backends.JobResult) map[string]string {
	w.Helper()
	files := map[string]string{}
	for _, f := range r.Files {
		content, err := w.env.Export(w.Context(), f.Token)
		if err != nil {
			w.Fatalf("export of %s: %v", f.Path, describe(err))
		}
		data, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil {
			w.Fatalf("export of %s: %v", f.Path, describe(err))
		}
		if _, twice := files[f.Path]; twice || int64(len(data)) != f.Size {
			w.Errorf("%s comes twice, or has %d bytes and not %d", f.Path, len(data), f.Size)
		}
		files[f.Path] = string(data)
	}
	return files
}

func testJobs(w *world) {
	r := shell(`cat`, `echo "$GREETING $`+secretName+`" >&2`, `exit 7`)
	r.Stdin, r.Environment = []byte("a\x00b\xff"), map[string]string{"GREETING": "hello"}
	got := w.job(r)
	if string(got.Stdout) != "a\x00b\xff" || string(got.Stderr) != "hello "+secret+"\n" || got.ExitCode != 7 || got.Signal != "" || got.TimedOut || got.Truncated {
		w.Errorf("the job came to %+v", got)
	}
	if len(got.Files) != 0 || got.FilesDropped != 0 {
		w.Errorf("it left %v", got.Files)
	}
	got = w.job(backends.JobRequest{Argv: []string{"sh", "-c", `kill -TERM $$`}})
	if got.ExitCode != -1 || got.Signal != "SIGTERM" {
		w.Errorf("a job that a signal ended: %+v", got)
	}
	// Standard input is nobody else's, and an input may be a program.
	got = w.job(backends.JobRequest{
		Argv:   []string{"./bin/tool", "an argument", ""},
		Inputs: []backends.JobInput{{Path: "bin/tool", Data: []byte("#!/bin/sh\ncat; printf '%s|' \"$@\"\n")}},
	})
	if string(got.Stdout) != "an argument||" || got.ExitCode != 0 {
		w.Errorf("an input that is a program: %+v", got)
	}
	first := w.job(shell("pwd; touch left"))
	second := w.job(shell("pwd; ls"))
	dir := strings.TrimSpace(string(first.Stdout))
	if dir == w.env.Info().Root || strings.HasPrefix(string(second.Stdout), dir+"\n") || strings.Contains(string(second.Stdout), "left") {
		w.Errorf("two jobs ran in %q and %q", first.Stdout, second.Stdout)
	}
	w.fetch(first)
	if got := w.job(backends.JobRequest{Argv: []string{"test", "-e", dir}}); got.ExitCode != 1 {
		w.Errorf("the directory of a job is still there: %+v", got)
	}
}

func testJobOutputs(w *world) {
	r := shell(
		`cat one two "sub/th ree" sub/deep/four > all`, `echo changed >> one`,
		`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do echo "$i" > "out-$i"; done`,
		`mkdir -p d/e && echo deep > d/e/f && printf '' > empty && ln -s one link && ln -s /etc/passwd out && ln -s / up && mkfifo pipe`,
		`chmod 500 d/e && mkdir locked && chmod 0 locked`,
	)
	for _, in := range []string{"one", "two", "sub/th ree", "sub/deep/four", "größe"} {
		r.Inputs = append(r.Inputs, backends.JobInput{Path: in, Data: []byte(in + "\n")})
	}
	got := w.job(r)
	files := w.fetch(got)
	if got.ExitCode != 0 || len(files) != 20 || files["all"] != "one\ntwo\nsub/th ree\nsub/deep/four\n" || files["out-17"] != "17\n" || files["d/e/f"] != "deep\n" {
		w.Errorf("5 inputs and 20 outputs gave %d files of %+v", len(files), got)
	}
	// Every one can be had once.
	if content, err := w.env.Export(w.Context(), got.Files[0].Token); err == nil {
		data, err := io.ReadAll(content)
		w.Errorf("a file can be fetched twice: %q, %v", data, errors.Join(err, content.Close()))
	}
	r = shell(`mkdir -p a/b c`, `for f in x.txt x.log a/y.txt a/b/z.txt c/w.txt; do echo $f > $f; done`)
	r.Collect = []string{"*.txt", "a/**/*.txt", "none/*"}
	names := slices.Sorted(mapKeys(w.fetch(w.job(r))))
	if want := []string{"a/b/z.txt", "a/y.txt", "x.txt"}; !slices.Equal(names, want) {
		w.Errorf("the globs collected %q, want %q", names, want)
	}
	// More than comes back is counted.
	got = w.job(shell(`i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done; dd if=/dev/null of=a-large bs=1 seek=269000000 2>/dev/null`))
	if n := len(w.fetch(got)); n == 0 || n+got.FilesDropped != 301 || slices.ContainsFunc(got.Files, func(f backends.JobFile) bool { return f.Path == "a-large" }) {
		w.Errorf("of 301 files %d came and %d were dropped", n, got.FilesDropped)
	}
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func testJobRefusals(w *world) {
	for name, r := range map[string]backends.JobRequest{
		"nothing":           {},
		"both":              {Argv: []string{"true"}, Script: &backends.JobScript{Interpreter: "sh"}},
		"no program":        {Argv: []string{""}},
		"no interpreter":    {Script: &backends.JobScript{Source: "true"}},
		"a bad glob":        {Argv: []string{"true"}, Collect: []string{"["}},
		"a bad variable":    {Argv: []string{"true"}, Environment: map[string]string{"A=B": ""}},
		"a NUL":             {Argv: []string{"true", "a\x00b"}},
		"a negative limit":  {Argv: []string{"true"}, Memory: -1},
		"a missing cwd":     {Argv: []string{"true"}, CWD: "there-is-none"},
		"a file below file": {Argv: []string{"true"}, Inputs: []backends.JobInput{{Path: "a"}, {Path: "a/b"}}},
	} {
		if _, err := w.tryJob(w.Context(), r); tool.KindOf(err) != tool.InvalidParams {
			w.Errorf("%s: %v", name, describe(err))
		}
	}
	for _, path := range []string{"", ".", "..", "../x", "a/../../x", "/etc/x", "a/", "a\x00b"} {
		_, err := w.tryJob(w.Context(), backends.JobRequest{Argv: []string{"true"}, Inputs: []backends.JobInput{{Path: path}}})
		var e *tool.Error
		if !errors.As(err, &e) || e.Kind != tool.InvalidParams || !strings.Contains(e.Path, "inputFiles") {
			w.Errorf("the input %q: %v", path, describe(err))
		}
	}
	_, err := w.tryJob(w.Context(), backends.JobRequest{Argv: []string{"true"}, CWD: "../.."})
	w.refusal("a cwd outside", err, "outside", tool.PathOutsideRoot)
	_, err = w.tryJob(w.Context(), backends.JobRequest{Argv: []string{"caisson-no-such-program"}})
	w.refusal("a missing program", err, "caisson-no-such-program", tool.Unsupported)
	_, err = w.tryJob(w.Context(), backends.JobRequest{Argv: []string{"true"}, Mode: "root"})
	w.refusal("a mode that there is not", err, "root", tool.InvalidParams, tool.Denied)
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	if _, err := w.tryJob(ctx, backends.JobRequest{Argv: []string{"true"}}); tool.KindOf(err) != tool.Cancelled {
		w.Errorf("cancelled before: %v", describe(err))
	}
}

// background starts what would outlive a shell: in its group, in a session of its
// own where there is setsid, and without the pipes. Their pids go to a file.
const background = `sleep 1000 & echo $! > "$PIDS/1"
(setsid sh -c 'echo $$ > "$PIDS/2"; exec sleep 1000' >/dev/null 2>&1 </dev/null || true) &
while [ ! -s "$PIDS/2" ] && command -v setsid >/dev/null; do sleep 0.01; done
`

// pidsOfJobs makes a directory of the workspace in which jobs tell their pids, and
// returns a request that does, and a check that these are dead.
func (w *world) pidsOfJobs(lines ...string) (r backends.JobRequest, dead func()) {
	w.Helper()
	w.sh("mkdir -p pids && rm -f pids/*")
	r = shell(append([]string{background}, lines...)...)
	r.CWD, r.Environment = ".", map[string]string{"PIDS": "pids"}
	return r, func() {
		w.Helper()
		w.dead("pids/1")
		if w.exists("pids/2") {
			w.dead("pids/2")
		}
	}
}

func testJobsEnd(w *world) {
	r, dead := w.pidsOfJobs("echo done")
	if got := w.job(r); string(got.Stdout) != "done\n" || got.TimedOut {
		w.Errorf("with children in the background: %+v", got)
	}
	dead()

	r, dead = w.pidsOfJobs(`echo partial; echo wrong >&2; echo kept > pids/kept; exec sleep 1000`)
	r.Timeout, r.Collect = time.Second+w.moment(), []string{"pids/kept"}
	got := w.job(r)
	if !got.TimedOut || string(got.Stdout) != "partial\n" || string(got.Stderr) != "wrong\n" || got.ExitCode != -1 || got.Signal != "SIGKILL" {
		w.Errorf("a job that was out of time: %+v", got)
	}
	if files := w.fetch(got); files["pids/kept"] != "kept\n" {
		w.Errorf("it left %v", files)
	}
	dead()

	r, dead = w.pidsOfJobs(`pwd > pids/ready; exec sleep 1000`)
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.tryJob(ctx, r)
		ended <- err
	}()
	w.until("the job runs", func() bool { return w.exists("pids/ready") })
	cancel()
	if err := <-ended; tool.KindOf(err) != tool.Cancelled {
		w.Errorf("cancelled: %v", describe(err))
	}
	dead()
}

func testJobLimits(w *world) {
	r := backends.JobRequest{Argv: []string{"sh", "-c", "while :; do :; done"}, CPUTime: time.Second}
	if got := w.job(r); got.ExitCode != -1 || got.Signal != "SIGXCPU" && got.Signal != "SIGKILL" || got.TimedOut {
		w.Errorf("a job without time on the processor: %+v", got)
	}
	r = shell(`echo starts; x=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; while [ ${#x} -lt 300000000 ]; do x=$x$x; done; echo ends`)
	r.Memory = 64 << 20
	if got := w.job(r); string(got.Stdout) != "starts\n" || got.ExitCode == 0 {
		w.Errorf("a job without memory: %+v", got)
	}
	r = backends.JobRequest{Argv: []string{"sh", "-c", `printf '%s|' "$0" "$@"`, "zero", "--", "-x", ""}, CPUTime: time.Minute, Memory: 1 << 30}
	if got := w.job(r); string(got.Stdout) != "zero|--|-x||" || len(got.Stderr) != 0 {
		w.Errorf("a job within its limits: %+v", got)
	}
	r = shell(`i=0; while [ $i -lt 5000 ]; do echo "line $i"; echo "error $i" >&2; i=$((i+1)); done`)
	r.MaxOutputBytes = 1000
	got := w.job(r)
	if n := len(got.Stdout) + len(got.Stderr); !got.Truncated || n > 1000 || n < 900 ||
		!bytes.HasPrefix(got.Stdout, []byte("line 0\n")) || !bytes.HasSuffix(got.Stderr, []byte("error 4999\n")) {
		w.Errorf("a job that writes more than it may: %d and %d bytes, %+v", len(got.Stdout), len(got.Stderr), got)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 256<<10) // 4 MiB, more than a frame's piece
	r = backends.JobRequest{
		Argv:   []string{"sh", "-c", "head -c 700000 big; wc -c < big >&2; cat > copy"},
		Inputs: []backends.JobInput{{Path: "big", Data: data}}, Stdin: data,
	}
	got = w.job(r)
	if !bytes.Equal(got.Stdout, data[:700000]) || strings.TrimSpace(string(got.Stderr)) != "4194304" || got.Truncated || w.fetch(got)["copy"] != string(data) {
		w.Errorf("4 MiB came as %s, and 700000 bytes came back as %d", got.Stderr, len(got.Stdout))
	}
}

func testJobsInTheWorkspace(w *world) {
	w.call("write_file", args{"path": "d/old", "content": "old"})
	r := backends.JobRequest{
		Argv: []string{"sh", "-c", "cat in/file; pwd; echo new > made; echo other > other.txt"}, CWD: "d",
		Inputs: []backends.JobInput{{Path: "in/file", Data: []byte("input\n")}},
	}
	got := w.job(r)
	if want := fmt.Sprintf("input\n%s\n", w.abs("d")); string(got.Stdout) != want || len(got.Files) != 0 {
		w.Errorf("it came to %+v, want %q", got, want)
	}
	w.holds("d/made", []byte("new\n"))
	w.holds("d/in/file", []byte("input\n"))
	w.holds("d/old", []byte("old"))
	r.Collect = []string{"*", "in/**"}
	files := w.fetch(w.job(r))
	if names := slices.Sorted(mapKeys(files)); !slices.Equal(names, []string{"made", "old", "other.txt"}) {
		w.Errorf("collected %q", names)
	}
	s := shell(`echo script`)
	s.CWD = "d"
	if got := w.job(s); string(got.Stdout) != "script\n" || len(got.Files) != 0 {
		w.Errorf("a script in the workspace: %+v", got)
	}
	list := w.sh("ls -A d . | sort | tr '\\n' ' '")
	if strings.Contains(list, "script") || strings.Contains(list, "caisson") {
		w.Errorf("jobs left something in the workspace: %s", list)
	}
}

// testJobConfinement shows that a job in a directory of its own changes nothing
// else, and one in the workspace only that.
func testJobConfinement(w *world) {
	w = w.reopen(tool.Standard, tool.Unconfined)
	outside := w.h.Outside(w.T) + "/caisson-" + random(4)
	w.write("kept", []byte("kept"))
	mine := `echo x > file && mkdir dir && mv file dir/ && echo x > "$TMPDIR/t" && cat "$TMPDIR/t"`
	for _, mode := range []tool.Mode{tool.Standard, tool.ReadOnly} {
		r := shell(mine, `for f in `+outside+` `+w.abs("new")+` `+w.abs("kept")+`; do if (echo y >> $f) 2>/dev/null; then echo wrote $f; fi; done`)
		r.Mode = mode
		if got := w.job(r); string(got.Stdout) != "x\n" || len(w.fetch(got)) != 1 {
			w.Errorf("a job in %s: %+v", mode, got)
		}
	}
	r := shell(`echo x > new && echo x > ` + outside)
	r.CWD = "."
	if got := w.job(r); got.ExitCode == 0 || !w.exists("new") {
		w.Errorf("a job in the workspace: %+v", got)
	}
	r.Mode = tool.ReadOnly
	if got := w.job(r); got.ExitCode == 0 {
		w.Errorf("a job in the workspace that may only read: %+v", got)
	}
	r.Inputs = []backends.JobInput{{Path: "kept", Data: []byte("changed")}}
	_, err := w.tryJob(w.Context(), r)
	w.refusal("an input of a job that may only read", err, "read", tool.Denied)
	r = shell(`echo x > kept`)
	r.CWD, r.Actor = ".", tool.Actor{ID: "side", Kind: tool.ActorSideChat}
	if got := w.job(r); got.ExitCode == 0 {
		w.Errorf("a side chat's job: %+v", got)
	}
	w.holds("kept", []byte("kept"))
}
