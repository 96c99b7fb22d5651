package process

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/cgroup"
)

// A command that was killed while the kernel has ended something for want of memory is
// said to be that, as surely as it can be known; what was killed from here is not.
func TestOutOfMemory(t *testing.T) {
	const killed, ofShell = "kill -KILL $$", "sh -c 'kill -KILL $$'; exit $?"
	contained := func(o *Options) { o.Contained = true }
	for name, test := range map[string]struct {
		options []func(*Options)
		line    string
		beside  string // runs in the background meanwhile
		rise    uint64 // with each look at the count
		unknown bool
		want    tool.OOMKilled
	}{
		"alone in a container":     {options: []func(*Options){contained}, line: killed, rise: 1, want: tool.OOMCertain},
		"what a shell ran":         {options: []func(*Options){contained}, line: ofShell, rise: 1, want: tool.OOMCertain},
		"with another command":     {options: []func(*Options){contained}, line: killed, beside: "sleep 300", rise: 1, want: tool.OOMProbable},
		"with something left":      {options: []func(*Options){contained}, line: killed, beside: "sleep 300 &", rise: 1, want: tool.OOMProbable},
		"with other sessions":      {options: []func(*Options){contained, func(o *Options) { o.Shared = true }}, line: killed, rise: 1, want: tool.OOMProbable},
		"on a machine":             {line: killed, rise: 1, want: tool.OOMProbable},
		"killed by somebody":       {options: []func(*Options){contained}, line: killed},
		"failed, and not killed":   {options: []func(*Options){contained}, line: "exit 1", rise: 1},
		"ended well":               {options: []func(*Options){contained}, line: "sh -c 'kill -KILL $$'; true", rise: 1},
		"another signal":           {options: []func(*Options){contained}, line: "kill -TERM $$", rise: 1},
		"where nothing is counted": {options: []func(*Options){contained}, line: killed, rise: 1, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := newTest(t, test.options...)
			var count atomic.Uint64
			m.oomKills = func() (uint64, bool) { return count.Add(test.rise), !test.unknown }
			if test.beside != "" {
				p := start(t, m, "echo runs; "+test.beside)
				see(t, m, p.ID, "runs")
				if strings.HasSuffix(test.beside, "&") {
					wait(t, m, p.ID)
				}
			}
			r, err := m.Run(t.Context(), Command{Command: test.line})
			if err != nil || r.OOMKilled != test.want {
				t.Errorf("in the foreground: %q, %+v, %v", r.OOMKilled, r, err)
			}

			p := wait(t, m, start(t, m, test.line).ID)
			if p.OOMKilled != test.want || p.LastError != test.want.Explain() {
				t.Errorf("in the background: %q, %+v", p.OOMKilled, p)
			}
		})
	}
}

func TestOutOfMemoryAfterAll(t *testing.T) {
	m, _ := newTest(t, func(o *Options) { o.Contained = true })
	var count atomic.Uint64
	m.oomKills = func() (uint64, bool) { return count.Add(1), true }
	// One that comes later is company too.
	first := start(t, m, "read x; kill -KILL $$")
	if _, err := m.Run(t.Context(), Command{Command: "true"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Write(t.Context(), first.ID, []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if p := wait(t, m, first.ID); p.OOMKilled != tool.OOMProbable {
		t.Errorf("with one that came later: %q", p.OOMKilled)
	}
	// What ends it from here is no want of memory.
	for name, end := range map[string]func(id string) error{
		"killed":  func(id string) error { _, err := m.Signal(t.Context(), id, "SIGKILL"); return err },
		"stopped": func(id string) error { _, err := m.Stop(t.Context(), id); return err },
	} {
		p := start(t, m, "trap '' TERM; echo runs; while :; do sleep 300; done")
		see(t, m, p.ID, "runs")
		if err := end(p.ID); err != nil {
			t.Fatal(err)
		}
		if p = wait(t, m, p.ID); p.Signal != "SIGKILL" || p.OOMKilled != "" {
			t.Errorf("%s: %s, %q", name, p.Signal, p.OOMKilled)
		}
	}
	r, err := m.Run(t.Context(), Command{Command: "sleep 300", Alone: true, Timeout: 10 * time.Millisecond})
	if err != nil || r.Signal != "SIGKILL" || r.OOMKilled != "" {
		t.Errorf("out of time: %+v, %v", r, err)
	}
	// What is killed from here when it has ended was not ended by that.
	r, err = m.Run(t.Context(), Command{Command: "kill -KILL $$", Alone: true})
	if err != nil || r.Signal != "SIGKILL" || r.OOMKilled != tool.OOMCertain {
		t.Errorf("alone: %+v, %v", r, err)
	}
}

func TestOOMFile(t *testing.T) {
	for want, group := range map[string]cgroup.Group{
		"/sys/fs/cgroup/memory/docker/abc/memory.oom_control": {Dir: "/sys/fs/cgroup/memory/docker/abc", Top: "/sys/fs/cgroup/memory", First: true},
		"/sys/fs/cgroup/user.slice/memory.events":             {Dir: "/sys/fs/cgroup/user.slice", Top: "/sys/fs/cgroup"},
	} {
		if got := oomFile(group); got != want {
			t.Errorf("%+v: %q, want %q", group, got, want)
		}
	}
	for text, want := range map[string]int{
		"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n":       7,
		"low 0\nmax 3\noom 2\noom_kill 1\noom_group_kill 0\n": 1,
		"oom_kill_disable 0\nunder_oom 0\n":                   -1,
		"oom_kill x\n":                                        -1,
	} {
		got, known := oomCount([]byte(text))
		if known != (want >= 0) || known && int(got) != want {
			t.Errorf("%q: %d, %t", text, got, known)
		}
	}
}
