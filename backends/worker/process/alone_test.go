//go:build linux

package process

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// left starts what would outlive a command: in its group, and in a session of its
// own without its pipes. Both tell their pids.
const left = `sleep 600 & echo $! > one; setsid sh -c 'echo $$ > two; exec sleep 600' >/dev/null 2>&1 </dev/null &
	until [ -s two ]; do sleep 0.01; done; `

// gone checks that the processes whose pids are in the files do not run.
func gone(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		if status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(status), ") Z ") {
			t.Errorf("the process %d of file %s lives on", pid, name)
		}
	}
}

// TestAlone: however a command ends that is alone, nothing of it outlives it, and
// its output is what it had written.
func TestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		line    string
		timeout time.Duration // over when it has written something
		cancel  bool
		want    func(r Result, err error) bool
	}{
		"by itself": {
			line: left + "echo out; echo err >&2; exit 3",
			want: func(r Result, err error) bool {
				return err == nil && r.ExitCode == 3 && !r.TimedOut && string(r.Stdout) == "out\n" && string(r.Stderr) == "err\n"
			},
		},
		"out of time": {
			line: left + "echo out; sleep 600", timeout: time.Hour,
			want: func(r Result, err error) bool {
				return err == nil && r.TimedOut && r.PromotedProcessID == "" && r.Signal == "SIGKILL" && string(r.Stdout) == "out\n"
			},
		},
		"cancelled": {
			line: left + "echo out; : > ready; sleep 600", cancel: true,
			want: func(r Result, err error) bool {
				return tool.KindOf(err) == tool.Cancelled && r.Signal == "SIGKILL" && string(r.Stdout) == "out\n"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := newTest(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.cancel {
				go func() {
					defer cancel()
					for ctx.Err() == nil {
						if _, err := os.Stat(filepath.Join(m.o.Root, "ready")); err == nil {
							return
						}
					}
				}()
			}
			if c.timeout > 0 {
				outOfTime(t, m, func(p *proc) bool { return p.taken() > 0 })
			}
			r, err := m.Run(ctx, Command{Command: c.line, Alone: true, Timeout: c.timeout})
			if !c.want(r, err) {
				t.Errorf("%+v, %v; %q, %q", r, err, r.Stdout, r.Stderr)
			}
			gone(t, m.o.Root)
			if list, err := m.List(t.Context()); len(list) != 0 || err != nil {
				t.Errorf("it is listed: %v, %v", list, err)
			}
		})
	}
}

// TestHidden: what hides its descent does not hide where it works.
func TestHidden(t *testing.T) {
	m, _ := newTest(t)
	p := &Place{Dir: t.TempDir()}
	p.Work, p.Temp = filepath.Join(p.Dir, "work"), p.Dir
	if err := os.Mkdir(p.Work, 0o700); err != nil {
		t.Fatal(err)
	}
	line := `for f in one two; do env -i setsid sh -c "echo \$\$ > $f; exec sleep 600" >/dev/null 2>&1 </dev/null & done
		until [ -s one ] && [ -s two ]; do sleep 0.01; done`
	r, err := m.Run(t.Context(), Command{Command: line, Place: p, Alone: true})
	if err != nil || r.ExitCode != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	gone(t, p.Work)
}

// TestPlace: a command with a place of its own runs there, has its temporary files
// there, and changes nothing else.
func TestPlace(t *testing.T) {
	m, _ := newTest(t, func(o *Options) { o.DefaultMode, o.Ceiling = tool.Standard, tool.Unconfined })
	p := &Place{Dir: t.TempDir()}
	p.Work, p.Temp = filepath.Join(p.Dir, "work"), filepath.Join(p.Dir, "tmp")
	for _, dir := range []string{p.Work, p.Temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	line := `pwd; echo $TMPDIR; echo x > here && echo x > "$TMPDIR/there" && mv here "$TMPDIR"; (echo x > ` + m.o.Root + `/root) 2>/dev/null || echo refused`
	for _, c := range []struct {
		mode tool.Mode
		cwd  string
		want string
	}{
		{tool.Standard, "", p.Work + "\n" + p.Temp + "\nrefused\n"},
		{tool.ReadOnly, "", p.Work + "\n" + p.Temp + "\nrefused\n"},
		{tool.Unconfined, "", p.Work + "\n" + p.Temp + "\n"},
		{tool.Standard, ".", m.o.Root + "\n" + p.Temp + "\n"},
		{tool.ReadOnly, ".", m.o.Root + "\n" + p.Temp + "\nrefused\n"},
	} {
		r, err := m.Run(t.Context(), Command{Command: line, Place: p, CWD: c.cwd, Mode: c.mode, Alone: true})
		if err != nil || string(r.Stdout) != c.want {
			t.Errorf("%s in %q: %q, %v, %s", c.mode, c.cwd, r.Stdout, err, r.Stderr)
		}
	}
	// Another command is not let in.
	r, err := m.Run(t.Context(), Command{Command: "(echo x > " + p.Work + "/x) 2>/dev/null || echo refused"})
	if err != nil || string(r.Stdout) != "refused\n" {
		t.Errorf("another command: %q, %v", r.Stdout, err)
	}
}
