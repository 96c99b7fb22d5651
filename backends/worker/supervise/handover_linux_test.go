package supervise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// opened are what the descriptors of a process refer to.
func opened(t *testing.T, pid int) (all []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil { // else closed since
			all = append(all, name)
		}
	}
	return all
}

// eventually waits for what comes without telling.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// streams are the standard input and output of an attach, as /proc names them.
func (p *pipes) streams(t *testing.T) (in, out string) {
	t.Helper()
	for fd, to := range []*string{&in, &out} {
		var err error
		if *to, err = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.cmd.Process.Pid, fd)); err != nil {
			t.Fatal(err)
		}
	}
	return in, out
}

// hasRead is what the kernel says of how much an attach has read.
func (p *pipes) hasRead(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// isTaken reports whether the worker holds both streams.
func isTaken(t *testing.T, worker int, in, out string) bool {
	t.Helper()
	all := opened(t, worker)
	return slices.Contains(all, in) && slices.Contains(all, out)
}

// initialize is that request of the suite's session.
func initialize(root string) string {
	return fmt.Sprintf(`{"id":"1","method":"initialize","token":%q,"data":{"version":4,"root":%q,"session":"s1"}}`+"\n", token, root)
}

// The worker has an attach's streams for itself, and none of them for its commands;
// when the host goes both are closed, and the attach ends well.
func TestHandOver(t *testing.T) {
	o := AttachOptions{Worker: options(t), Mark: "m"}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	p := startAttach(t, o)
	c := connect(t, p, o.Mark, t.TempDir())
	in, out := p.streams(t)
	pid := workerPID(t, o.Worker)
	if !isTaken(t, pid, in, out) {
		t.Errorf("the worker holds %q, without %s and %s", opened(t, pid), in, out)
	}
	eventually(t, "a call that passes the attach by", func() bool {
		before := p.hasRead(t)
		if _, err := c.Call(t.Context(), wire.MethodProcessList, nil, nil); err != nil {
			t.Fatal(err)
		}
		return p.hasRead(t) == before
	})
	list := startProcess(t, c, "exec ls -l /proc/self/fd")
	eventually(t, "the end of ls", func() bool { return getProcess(t, c, list.ID).Status.Terminal() })
	reply, err := c.Call(t.Context(), wire.MethodProcessRead, wire.ProcessRequest{ID: list.ID, Options: &wire.ReadOptions{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(reply.Body); !strings.Contains(text, "0 -> ") || strings.Contains(text, in) || strings.Contains(text, out) {
		t.Errorf("a command has %s beside %s and %s", text, in, out)
	}
	if err := c.Close(); err != nil { // it has waited for the attach
		t.Errorf("the attach ended with %v", err)
	}
	eventually(t, "the worker holds neither", func() bool {
		all := opened(t, pid)
		return !slices.Contains(all, in) && !slices.Contains(all, out)
	})
}

// joined is an attach without its process: join, as attach calls it.
type joined struct {
	io.Reader
	io.WriteCloser
	done chan error
}

func (j *joined) Close() error { return errors.Join(j.WriteCloser.Close(), <-j.done) }

// startJoin reaches the worker at path by way of a join.
func startJoin(t *testing.T, path string) *joined { return startVia(t, path, join) }

// startVia reaches the worker at path by way of a join, or of what stands for one.
func startVia(t *testing.T, path string, via func(context.Context, *net.UnixConn, io.ReadCloser, io.Writer) error) *joined {
	t.Helper()
	conn, err := dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	attachIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, attachOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	j := &joined{Reader: out, WriteCloser: in, done: make(chan error, 1)}
	go func() {
		err := via(t.Context(), conn, attachIn, attachOut)
		j.done <- errors.Join(err, attachIn.Close(), attachOut.Close())
	}()
	t.Cleanup(func() { out.Close() })
	return j
}

// Many come and go, and the worker has no more open than before.
func TestHandOverLeaksNothing(t *testing.T) {
	o := options(t)
	t.Cleanup(func() { endWorker(t, o) })
	if err := Start(t.Context(), "", o, nil); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	once := func() {
		if err := connect(t, startJoin(t, o.Listen), "", root).Close(); err != nil {
			t.Fatal(err)
		}
	}
	once()
	pid := workerPID(t, o)
	before := len(opened(t, pid))
	for range 200 {
		once()
	}
	// The worker closes its end of the socket last.
	eventually(t, "as few descriptors as before", func() bool { return len(opened(t, pid)) <= before })
}

// What whoever starts a service leaves open is not the worker's, which outlives both:
// somebody may wait for the end of it.
func TestWorkerIsGivenNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	left, err := syscall.Dup(int(w.Fd())) // which is not closed on exec
	if err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Lifetime = 10 * patience
	t.Cleanup(func() { endWorker(t, o) })
	err = Start(t.Context(), "", o, nil)
	if err := errors.Join(err, syscall.Close(left), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the worker's start the pipe gives %d bytes and %v, and not its end; the worker has %q", n, err, opened(t, workerPID(t, o)))
	}
}

// However the first frame is cut, and whatever comes behind it, each is answered in
// its turn.
func TestHandOverOfPieces(t *testing.T) {
	o := options(t)
	t.Cleanup(func() { endWorker(t, o) })
	if err := Start(t.Context(), "", o, nil); err != nil {
		t.Fatal(err)
	}
	first := initialize(t.TempDir())
	list := func(id int) string {
		return fmt.Sprintf(`{"id":"%d","method":"process/list","token":%q}`+"\n", id, token)
	}
	padded := strings.Replace(first, `{"id"`, "{"+strings.Repeat(" ", 10<<10)+`"id"`, 1)
	for name, pieces := range map[string][]string{
		"halves":           {first[:30], first[30:], list(2) + list(3)},
		"one and a half":   {first[:30], first[30:] + list(2)[:9], list(2)[9:], list(3)},
		"more than a read": {padded[:6000], padded[6000:], list(2), list(3)[:4], list(3)[4:]},
	} {
		t.Run(name, func(t *testing.T) {
			j := startJoin(t, o.Listen)
			lines := bufio.NewReader(j)
			initialized := false
			for i, p := range pieces {
				// A request before the answer to initialize would be refused.
				if i > 0 && strings.Contains(strings.Join(pieces[:i], ""), "\n") && !initialized {
					initialized = true
					if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"id":"1"`) {
						t.Fatalf("%q, %v", line, err)
					}
				}
				if _, err := io.WriteString(j, p); err != nil {
					t.Fatal(err)
				}
			}
			var ids []string
			for range 2 {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, line[:9])
			}
			slices.Sort(ids)
			if !slices.Equal(ids, []string{`{"id":"2"`, `{"id":"3"`}) {
				t.Errorf("answers %q", ids)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A killed attach takes its streams along: the host sees their end, while what it asked
// for still ends in the worker.
func TestHandOverKilled(t *testing.T) {
	o := AttachOptions{Worker: options(t)}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	root := t.TempDir()
	p := startAttach(t, o)
	in, out := p.streams(t)
	c := connect(t, p, "", root)
	pid := workerPID(t, o.Worker)
	if !isTaken(t, pid, in, out) {
		t.Fatal("the worker has not taken the streams")
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the host does not see the end")
	}
	eventually(t, "that the worker closes both", func() bool {
		all := opened(t, pid)
		return !slices.Contains(all, in) && !slices.Contains(all, out)
	})
}

// A file is relayed, and the worker never has it.
func TestFileIsRelayed(t *testing.T) {
	o := AttachOptions{Worker: options(t), Mark: "m"}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	path := filepath.Join(t.TempDir(), "frames")
	if err := os.WriteFile(path, []byte(initialize(t.TempDir())), 0o600); err != nil {
		t.Fatal(err)
	}
	frames, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer frames.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"attach"}, o.Args()...)...)
	cmd.Stdin = frames
	out, err := cmd.Output()
	if err != nil || !bytes.HasPrefix(out, []byte("m\n{\"id\":\"1\"")) {
		t.Errorf("%q, %v", out, err)
	}
}

// TestOldWorker has today's server on the socket alone stand for a worker that does not
// know of descriptors. Its first frame is longer than what is read at once.
func TestOldWorker(t *testing.T) {
	path := options(t).Listen
	l, err := endpoint.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answer := wire.HandlerFunc(func(context.Context, *wire.Request) (wire.Response, error) {
		return wire.Response{Data: wire.Initialized{Version: wire.Version, Root: "/"}}, nil
	})
	oldWorker := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = wire.Serve(t.Context(), conn, answer, wire.ServerOptions{})
		}
		oldWorker <- err
	}()
	j := startJoin(t, path)
	c := wire.NewClient(j, wire.ClientOptions{Token: token})
	long := wire.Initialize{Root: "/", Session: "s1", Environment: map[string]string{"LONG": strings.Repeat("x", 20<<10)}}
	if _, err := c.Initialize(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Call(t.Context(), wire.MethodProcessList, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(c.Close(), <-oldWorker); err != nil {
		t.Error(err)
	}
}

// TestOldAttach reaches today's worker by relaying alone, as an older attach does.
func TestOldAttach(t *testing.T) {
	o := options(t)
	t.Cleanup(func() { endWorker(t, o) })
	if err := Start(t.Context(), "", o, nil); err != nil {
		t.Fatal(err)
	}
	oldAttach := startVia(t, o.Listen, relay)
	c := connect(t, oldAttach, "", t.TempDir())
	if p := startProcess(t, c, "true"); p.PID == 0 {
		t.Errorf("started %+v", p)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
