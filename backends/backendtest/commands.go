package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

func commandTests() []test {
	return []test{
		{name: "Bash", needs: needShell, run: testBash},
		{name: "BashWithoutStdin", needs: needShell, run: testNoStdin},
		{name: "BashReturnsWhenItsCommandEnds", needs: needShell, run: testGrandchild},
		{name: "BashOutput", needs: needShell, run: testBashOutput},
		{name: "CancelKillsTheGroup", needs: needShell, run: testCancel},
		{name: "TimeoutKillsTheGroup", needs: needShell, run: testTimeout},
		{name: "OwnTimeoutAdopts", needs: needShell, run: testAdoption},
		{name: "ChildrenSeeNoProtocol", needs: needShell, run: testDescriptors},
		{name: "Git", needs: needGit, run: testGit},
	}
}

func testBash(w *world) {
	r := w.bash("echo out; echo err >&2; exit 3")
	if r.ExitCode != 3 || r.Stdout != "out\n" || r.Stderr != "err\n" || r.TimedOut || r.StdoutTruncated {
		w.Errorf("%+v", r)
	}
	w.call("write_file", args{"path": "d/file", "content": "x"})
	if r := into[ran](w, "bash", args{"command": "pwd; ls", "cwd": "d"}); r.Stdout != w.abs("d")+"\nfile\n" {
		w.Errorf("in a folder: %+v", r)
	}
	if out := w.sh("pwd"); out != w.env.Info().Root+"\n" {
		w.Errorf("runs in %q, not in the root %q", out, w.env.Info().Root)
	}
	w.refused("bash", args{"command": "true", "cwd": "none"}, tool.InvalidParams)
	w.refused("bash", args{"command": "true", "timeout_seconds": 3601}, tool.InvalidParams)

	if out := w.sh("echo $" + secretName); out != secret+"\n" {
		w.Errorf("the variable reads %q", out)
	}
	// The value is nobody's argument.
	if out := w.sh(`for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f 2>/dev/null && echo; done; true`); strings.Contains(out, secret) {
		w.Errorf("a command line shows the secret: %s", out)
	}
	r = w.bash("kill -KILL $$")
	if r.ExitCode == 0 || r.TimedOut {
		w.Errorf("a command that killed itself: %+v", r)
	}
	r = into[ran](w, "bash", args{"command": "echo later > later; echo started", "run_in_background": true})
	if r.Promoted == "" {
		w.Fatalf("in the background: %+v", r)
	}
	w.until("the background command's file", func() bool { return w.exists("later") })
}

func testNoStdin(w *world) {
	if out := w.sh("cat; echo end"); out != "end\n" {
		w.Errorf("cat without stdin: %q", out)
	}
	if out := w.sh("read x || echo none"); out != "none\n" {
		w.Errorf("read without stdin: %q", out)
	}
}

func testGrandchild(w *world) {
	started := time.Now()
	out := w.sh("sleep 300 & echo $! > pid; echo started")
	if out != "started\n" || time.Since(started) > patience {
		w.Errorf("%q after %v", out, time.Since(started))
	}
	// It was left alone, and goes with the environment.
	if r := w.bash("kill -0 $(cat pid)"); r.ExitCode != 0 {
		w.Errorf("the grandchild is gone: %+v", r)
	}
}

func testBashOutput(w *world) {
	// Whatever a command prints, the call works and its result is JSON.
	r := w.bash(`printf 'a\377\000\303b\342\202'; printf '\355\240\200' >&2`)
	if r.ExitCode != 0 || !strings.HasPrefix(r.Stdout, "a") || !strings.Contains(r.Stdout, "b") {
		w.Errorf("bytes that are no text: %+v", r)
	}
	const limit = 10_000
	res, err := w.request(w.Context(), tool.Request{Name: "bash", MaxOutputBytes: limit},
		args{"command": "i=0; while [ $i -lt 3000 ]; do echo line $i; echo error $i >&2; i=$((i+1)); done"})
	if err != nil {
		w.Fatal(describe(err))
	}
	if r := decode[ran](w, res); len(r.Stdout)+len(r.Stderr) > limit || len(r.Stdout) == 0 || len(r.Stderr) == 0 || !r.StdoutTruncated || !r.StderrTruncated {
		w.Errorf("%d bytes of stdout (%v), %d of stderr (%v), limit %d", len(r.Stdout), r.StdoutTruncated, len(r.Stderr), r.StderrTruncated, limit)
	}
	if r := w.bash("head -c 300000000 /dev/zero | tr '\\0' x"); !r.StdoutTruncated || r.ExitCode != 0 {
		w.Errorf("300 MB of output: exit code %d, truncated %v", r.ExitCode, r.StdoutTruncated)
	}
}

// sleeper writes down its pid and its child's, and leaves a proof if it is
// not ended in time.
const sleeper = "echo $$ > shell; echo before > earlier; (sleep 300; touch PROOF) & echo $! > child; echo started > started; wait; sleep 300; touch PROOF"

func (w *world) endedWithoutProof() {
	w.Helper()
	w.dead("shell")
	w.dead("child")
	if w.exists("PROOF") {
		w.Error("the command went on after its end")
	}
	w.holds("earlier", []byte("before\n"))
}

func testCancel(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := w.env.Call(ctx, tool.Request{ID: "cancelled", Name: "bash", Arguments: jsonish(`{"command":"` + sleeper + `"}`)})
		done <- err
	}()
	w.until("the start of the command", func() bool { return w.exists("started") })
	cancel()
	select {
	case err := <-done:
		if tool.KindOf(err) != tool.Cancelled && !errors.Is(err, context.Canceled) {
			w.Errorf("the cancelled call: %v", describe(err))
		}
	case <-time.After(patience):
		w.Fatal("a cancelled call does not return")
	}
	w.endedWithoutProof()
}

func testTimeout(w *world) {
	_, err := w.request(w.Context(), tool.Request{Name: "bash", Timeout: w.moment()}, args{"command": sleeper})
	if tool.KindOf(err) != tool.Timeout {
		w.Errorf("a call over the caller's limit: %v", describe(err))
	}
	w.endedWithoutProof()
}

func testAdoption(w *world) {
	r := into[ran](w, "bash", args{"command": "echo $$ > pid; " + counter, "timeout_seconds": math.Ceil(w.moment().Seconds())})
	if !r.TimedOut || r.Promoted == "" || !strings.HasPrefix(r.Stdout, "1\n2\n") {
		w.Fatalf("%+v", r)
	}
	p, err := w.env.Processes().Get(w.Context(), r.Promoted)
	if err != nil {
		w.Fatal(describe(err))
	}
	if pid := strings.TrimSpace(string(w.read("pid"))); p.Status != tool.ProcessRunning || pid != fmt.Sprint(p.PID) {
		w.Errorf("adopted %+v, the command's pid is %s", p, pid)
	}
	w.counts(p.ID, 0, 60)
	w.stop(p.ID)
	w.dead("pid")
}

// testDescriptors lists what a command has open: its three streams and nothing
// of the protocol's.
func testDescriptors(w *world) {
	const list = "ls -l /proc/$$/fd; true" // of the shell, which stays beside ls
	check := func(what, out string) {
		open := make(map[string]string)
		for line := range strings.Lines(out) {
			if link, target, ok := strings.Cut(strings.TrimSpace(line), " -> "); ok {
				open[link[strings.LastIndexByte(link, ' ')+1:]] = target
			}
		}
		if len(open) != 3 || open["0"] == "" || open["1"] == "" || open["2"] == "" || strings.Contains(open["0"], "socket:") {
			w.Errorf("%s has these open: %v", what, open)
		}
	}
	check("a command", w.sh(list))
	p := w.start(tool.StartRequest{Command: list})
	check("a process", string(w.output(p.ID)))
	if out := w.sh("env"); strings.Contains(out, w.binding.Secrets.Token) {
		w.Error("a command sees the token in its environment")
	}
	if out := w.sh(`cat /proc/$PPID/cmdline | tr '\0' ' '`); strings.Contains(out, w.binding.Secrets.Token) {
		w.Errorf("the token is in the worker's arguments: %s", out)
	}
}

func testGit(w *world) {
	said := func(res tool.Result) string { return text(res) + string(res.StructuredContent) }
	w.call("git", args{"subcommand": "init", "args": []string{"-q"}})
	w.write("tracked", []byte("1\n"))
	w.call("git", args{"subcommand": "add", "args": []string{"tracked"}})
	w.call("git", args{"subcommand": "commit", "args": []string{"-q", "-m", "the message"}})
	w.write("tracked", []byte("2\n"))
	for sub, want := range map[string]string{"log": "the message", "status": "tracked", "diff": "+2"} {
		if out := said(w.call("git", args{"subcommand": sub})); !strings.Contains(out, want) {
			w.Errorf("git %s: %s", sub, out)
		}
	}
	res, err := w.try("git", args{"subcommand": "no-such-command"})
	if err == nil && !res.IsError && !strings.Contains(said(res), "no-such-command") {
		w.Errorf("an unknown subcommand: %s", said(res))
	}
}
