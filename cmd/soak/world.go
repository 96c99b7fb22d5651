//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slots is how many services there can be at a time.
const slots = 2

// world is where a soak takes place: directories of its own, services, agents.
type world struct {
	plan    plan
	caisson string
	dir     string // everything that is ours
	runtime string // sockets, whose paths must be short
	journal *journal
	tally   *tally
	agents  []*agent

	mu       sync.Mutex
	services [slots]*service
	changed  chan struct{} // closed when services change
}

func newWorld(caisson, image string, p plan) (*world, error) {
	caisson, err := filepath.Abs(caisson)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "caisson-soak-")
	if err != nil {
		return nil, err
	}
	w := &world{
		plan: p, caisson: caisson, dir: dir, runtime: filepath.Join(dir, "r"),
		tally: newTally(), changed: make(chan struct{}),
	}
	for _, name := range []string{w.runtime, w.temporary(), filepath.Join(dir, "work")} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
	}
	file, err := os.Create(filepath.Join(dir, "journal.log"))
	if err != nil {
		return nil, err
	}
	w.journal = &journal{began: time.Now(), file: file}
	if err := os.WriteFile(w.config(), configuration(image), 0o600); err != nil {
		return nil, err
	}
	for i := range p.profiles {
		a, err := newAgent(w, i)
		if err != nil {
			return nil, err
		}
		w.agents = append(w.agents, a)
	}
	return w, nil
}

// configuration is the user's file.
func configuration(image string) []byte {
	profiles := map[string]any{}
	if image != "" {
		with := func(members map[string]any) map[string]any {
			members["backend"], members["image"], members["pull"] = "docker", image, "never"
			return members
		}
		profiles = map[string]any{
			box:    with(map[string]any{}),
			keep:   with(map[string]any{"persistent": true}),
			shared: with(map[string]any{"shared": true}),
		}
	}
	text, err := json.Marshal(map[string]any{"execution_environments": map[string]any{"profiles": profiles}})
	if err != nil {
		panic(err) // strings and booleans always encode
	}
	return text
}

func (w *world) config() string    { return filepath.Join(w.dir, "config.json") }
func (w *world) state() string     { return filepath.Join(w.dir, "state", "caisson") }
func (w *world) temporary() string { return filepath.Join(w.dir, "tmp") }

// environment is what services have.
func (w *world) environment() []string {
	return append(os.Environ(), "HOME="+w.dir, "TMPDIR="+w.temporary(), "XDG_RUNTIME_DIR="+w.runtime,
		"XDG_STATE_HOME="+filepath.Join(w.dir, "state"), "XDG_DATA_HOME="+filepath.Join(w.dir, "data"),
		"XDG_CONFIG_HOME="+w.dir, "CAISSON_CONFIG="+w.config())
}

// mark is how long, in seconds, everything sleeps that the soak starts: by it
// its processes are known among all of the machine.
func (w *world) mark() string { return "1" + strconv.Itoa(os.Getpid()) + ".25" }

// put makes a service the one of its slot.
func (w *world) put(s *service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.services[s.slot] = s
	close(w.changed)
	w.changed = make(chan struct{})
}

// in is the living service of a slot, or nil.
func (w *world) in(slot int) *service {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.services[slot]; s != nil && !s.gone() {
		return s
	}
	return nil
}

// pick waits for a service that lives, that of the slot if there is one.
func (w *world) pick(ctx context.Context, slot int) (*service, error) {
	limit := time.NewTimer(startLimit + exitLimit)
	defer limit.Stop()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		for _, i := range []int{slot, 1 - slot} {
			if s := w.in(i); s != nil {
				return s, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit.C:
			return nil, errors.New("there is no service")
		}
	}
}

// workers are the pids of the local workers of a session, or of all for "".
func (w *world) workers(session string) ([]int, error) {
	return processes(func(cmdline []byte) bool {
		return bytes.Contains(cmdline, []byte("\x00worker\x00")) && bytes.Contains(cmdline, []byte("--state="+w.state())) &&
			(session == "" || bytes.Contains(cmdline, []byte("\x00--session="+session+"\x00")))
	})
}

// processes are the pids of processes whose arguments, each ended by a NUL, are
// wanted.
func processes(wanted func(cmdline []byte) bool) ([]int, error) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, proc := range procs {
		cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		pid, notNumber := strconv.Atoi(filepath.Base(proc))
		if err == nil && notNumber == nil && wanted(cmdline) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// dockerLimit bounds one docker command on a busy machine.
const dockerLimit = time.Minute

// docker runs the docker command.
func docker(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return strings.TrimSpace(string(out)), nil
}

// storeLabel selects what this soak's services made in the engine; "" when they
// made nothing.
func (w *world) storeLabel() (string, error) {
	raw, err := os.ReadFile(filepath.Join(w.state(), "store.json"))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var store struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &store); err != nil || store.ID == "" {
		return "", fmt.Errorf("the store's id: %s: %w", raw, err)
	}
	return "label=dev.caisson.store=" + store.ID, nil
}

// containers are the names of this soak's containers, and volumes those of its
// environments' volumes.
func (w *world) engineHas(ctx context.Context) (containers, volumes string, err error) {
	label, err := w.storeLabel()
	if err != nil || label == "" {
		return "", "", err
	}
	containers, err = docker(ctx, "ps", "--all", "--format", "{{.Names}}", "--filter", label)
	if err != nil {
		return "", "", err
	}
	volumes, err = docker(ctx, "volume", "ls", "--format", "{{.Name}}", "--filter", label, "--filter", "label=dev.caisson.kind=environment")
	return containers, volumes, err
}

// abandon ends what runs, after a failure; files and state stay for inspection.
func (w *world) abandon() error {
	var errs []error
	for _, s := range w.services {
		if s != nil {
			_ = s.cmd.Process.Kill() // it may have ended
		}
	}
	pids, err := w.leftProcesses()
	errs = append(errs, err)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	ctx := context.Background()
	containers, _, err := w.engineHas(ctx)
	errs = append(errs, err)
	for name := range strings.FieldsSeq(containers) {
		_, err := docker(ctx, "rm", "--force", "--volumes", name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leftProcesses are the pids of everything that the soak's services started.
func (w *world) leftProcesses() ([]int, error) {
	return processes(func(cmdline []byte) bool {
		return bytes.Contains(cmdline, []byte(w.state())) || bytes.Contains(cmdline, []byte("\x00"+w.mark()+"\x00"))
	})
}
