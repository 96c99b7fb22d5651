//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

const (
	// together is how many sessions are looked at at once.
	together = 8
	// departing is how long what was told to end may take to be gone.
	departing = 30 * time.Second
	// quick is how many calls a service answers whose memory is then compared,
	// and grown how much more it may take afterwards.
	quick = 3000
	grown = 48 << 20
)

// check finds out, when all is over, whether everything is as the model says and
// nothing stays behind.
func (w *world) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checking, fmt.Errorf("the checks took longer than %v", checking))
	defer cancel()
	for slot := range slots {
		if s := w.in(slot); s != nil {
			// Half of the services have no time to say good-bye.
			how := s.Close
			if slot == 0 {
				how = s.cmd.Process.Kill
			}
			if err := s.end(ctx, how); err != nil {
				return fmt.Errorf("the end of service %d: %w", slot, err)
			}
		}
	}
	s, err := w.start(ctx, 0)
	if err != nil {
		return err
	}
	_, before, err := measure(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := w.each(func(a *agent) error { return a.settle(ctx) }); err != nil {
		return err
	}
	if err := w.flat(ctx, s); err != nil {
		return err
	}
	if err := w.each(func(a *agent) error { return a.leave(ctx) }); err != nil {
		return err
	}
	if list, err := s.SessionList(ctx, protocol.SessionListParams{}); err != nil || len(list.Sessions) > 0 {
		return fmt.Errorf("after all were deleted there are the sessions %+v: %w", list.Sessions, err)
	}
	// What a service that was killed had made and not yet noted is nobody's.
	pruned, err := s.BackendPrune(ctx, protocol.BackendPruneParams{})
	if err != nil {
		return fmt.Errorf("backend/prune: %s", explain(err))
	}
	for range pruned.Resources {
		w.tally.count("leftovers of crashes pruned")
	}
	var after int
	if err := until(ctx, "the service to close its descriptors", func() (bool, error) {
		_, after, err = measure(s.cmd.Process.Pid)
		return after <= before+descriptorsKept, err
	}); err != nil {
		return fmt.Errorf("%d before the sessions, %d after them: %w", before, after, err)
	}
	if err := s.end(ctx, s.Close); err != nil {
		return err
	}
	return w.clean(ctx)
}

// descriptorsKept is what a service may keep open for later: idle connections
// to the engine and what the runtime needs.
const descriptorsKept = 8

// each does something with every agent, several at a time.
func (w *world) each(f func(*agent) error) error {
	var group sync.WaitGroup
	slotsLeft := make(chan struct{}, together)
	errs := make([]error, len(w.agents))
	for i, a := range w.agents {
		group.Go(func() {
			slotsLeft <- struct{}{}
			defer func() { <-slotsLeft }()
			if err := f(a); err != nil {
				errs[i] = fmt.Errorf("at the end, %s: %w", a.sessionID(), err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// settle compares a session with its model.
func (a *agent) settle(ctx context.Context) error {
	if err := a.open(ctx, a.plan.dice(a.index, 0)); err != nil {
		return err
	}
	for name, f := range a.files {
		if err := a.readFile(ctx, name, f, false); err != nil {
			return err
		}
	}
	if err := a.readBook(ctx, nil); err != nil {
		return err
	}
	// What killed writers have left goes with the next write.
	if err := a.write(ctx, a.plan.dice(a.index, 0)); err != nil {
		return err
	}
	if err := a.list(ctx, nil); err != nil {
		return err
	}
	for _, p := range a.processes {
		if err := a.account(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range a.published {
		if err := a.readArtifact(ctx, p); err != nil {
			return err
		}
	}
	return a.list(ctx, nil)
}

// account ends a process, if it has not ended, and reads all that it printed.
func (a *agent) account(ctx context.Context, p *process) error {
	if p.final == nil && p.echoes && p.stopped == nothing {
		// One that may have been closed before may refuse.
		_, err := a.service.ProcessCloseStdin(ctx, protocol.ProcessParams{SessionID: a.sessionID(), ProcessID: p.id})
		if err != nil && p.closed == nothing {
			return fmt.Errorf("close the input of %s: %s", p.id, explain(err))
		}
		p.closed = done
	}
	if p.final == nil && (p.lasts || p.stopped != nothing) {
		if err := a.end(ctx, p, false); err != nil {
			return err
		}
	}
	result, err := a.service.ProcessWait(ctx, protocol.ProcessWaitParams{SessionID: a.sessionID(), ProcessID: p.id})
	if err != nil || result.TimedOut {
		return fmt.Errorf("process %s (%s) does not end: %+v, %s", p.id, p.command, told(result.Process), explain(err))
	}
	if err := a.record(p, result.Process); err != nil {
		return err
	}
	complete, err := a.readOutput(ctx, p, 0, departing.Milliseconds())
	if err == nil && !complete && !p.lost() {
		err = fmt.Errorf("the output of %s (%s) has no end", p.id, p.command)
	}
	return err
}

// flat makes many calls, which must leave the service's memory as it is.
func (w *world) flat(ctx context.Context, s *service) error {
	var sizes []int64
	for range 2 {
		var group sync.WaitGroup
		var mu sync.Mutex
		var wrong error
		for i := range together {
			group.Go(func() {
				r := rand.New(rand.NewPCG(w.plan.seed, uint64(i)))
				for range quick / together {
					a := w.agents[r.IntN(len(w.agents))]
					if _, err := s.FileStat(ctx, protocol.FileParams{SessionID: a.sessionID(), Path: ""}); err != nil {
						mu.Lock()
						wrong = fmt.Errorf("fs/stat in %s: %s", a.sessionID(), explain(err))
						mu.Unlock()
						return
					}
				}
			})
		}
		group.Wait()
		memory, _, err := measure(s.cmd.Process.Pid)
		if err = errors.Join(wrong, err); err != nil {
			return err
		}
		sizes = append(sizes, memory)
	}
	w.tally.peak("MiB of the last service with all sessions", sizes[1]>>20)
	if sizes[1]-sizes[0] > grown {
		return fmt.Errorf("%d quick calls have grown the service from %d to %d MiB", quick, sizes[0]>>20, sizes[1]>>20)
	}
	return nil
}

// leave deletes the agent's session and all forks.
func (a *agent) leave(ctx context.Context) error {
	for range 3 {
		if err := a.deleteStrays(ctx); err != nil {
			return err
		}
	}
	if len(a.strays) > 0 {
		return fmt.Errorf("the forks %v cannot be deleted", a.strays)
	}
	return a.delete(ctx, a.plan.dice(a.index, 0))
}

// until waits until ok.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	limit := time.NewTimer(departing)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if is, err := ok(); is || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("waited %v in vain for %s", departing, what)
		}
	}
}

// clean looks for what is left of services and sessions that are gone.
func (w *world) clean(ctx context.Context) error {
	var errs []error
	var pids []int
	if err := until(ctx, "the end of all processes", func() (_ bool, err error) {
		pids, err = w.leftProcesses()
		return len(pids) == 0, err
	}); err != nil {
		errs = append(errs, fmt.Errorf("processes %v are left: %w", commands(pids), err))
	}
	containers, volumes, err := w.engineHas(ctx)
	if containers != "" || volumes != "" || err != nil {
		errs = append(errs, fmt.Errorf("containers %q and volumes %q are left: %w", containers, volumes, err))
	}
	if out, err := w.removeProgramVolumes(ctx); err != nil {
		errs = append(errs, fmt.Errorf("%w: %s", err, out))
	}
	for _, dir := range []string{w.runtime, w.temporary(), filepath.Join(w.state(), "sessions"), filepath.Join(w.state(), "environments")} {
		left, err := files(dir)
		if err != nil || len(left) > 0 {
			errs = append(errs, fmt.Errorf("in %s there is left: %v: %w", dir, left, err))
		}
	}
	torn, err := files(filepath.Join(w.dir, "work"))
	torn = slices.DeleteFunc(torn, func(name string) bool { return !strings.Contains(filepath.Base(name), "caisson") })
	if err != nil || len(torn) > 0 {
		errs = append(errs, fmt.Errorf("half-written files are left: %v: %w", torn, err))
	}
	return errors.Join(errs...)
}

// commands are the command lines of processes, for messages.
func commands(pids []int) []string {
	var lines []string
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil {
			lines = append(lines, fmt.Sprintf("%d: %s", pid, strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return lines
}

// files are all that is in a directory and is no directory.
func files(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

// removeProgramVolumes removes the volumes that hold the program itself, which
// services leave for the next one.
func (w *world) removeProgramVolumes(ctx context.Context) (string, error) {
	label, err := w.storeLabel()
	if err != nil || label == "" || !slices.Contains(w.plan.profiles, box) {
		return "", err
	}
	names, err := docker(ctx, "volume", "ls", "--quiet", "--filter", label)
	if err != nil || names == "" {
		return "", err
	}
	return docker(ctx, append([]string{"volume", "rm"}, strings.Fields(names)...)...)
}
