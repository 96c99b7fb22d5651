package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/ssh/connection"
	"github.com/caisson-dev/caisson/backends/tool"
)

// placement is the worker's program on a machine. An empty sum is one that the
// user put there, which is not compared with anything.
type placement struct {
	program string
	sum     string
}

// workerName is the file name of the worker in the directory of its build.
const workerName = "caisson"

// worker returns the worker's program on the machine, and puts it there where it
// is not. key names the machine. That a program is the right one is checked by
// its hash each time it is used.
func (b *Backend) worker(ctx context.Context, m machine, key string, p profile.Profile, progress backends.Progress) (placement, error) {
	if p.Worker != "" {
		return placement{program: p.Worker}, nil
	}
	key += "\x00" + p.Workspace
	release, err := b.acquire(ctx, key)
	if err != nil {
		return placement{}, err
	}
	defer release()
	b.mu.Lock()
	known, ok := b.placed[key]
	b.mu.Unlock()
	if ok {
		return known, nil
	}
	facts, err := m.look(ctx)
	if err != nil {
		return placement{}, err
	}
	file, err := b.programs.Find(b.executable, facts.os, facts.arch)
	if err != nil {
		return placement{}, err
	}
	placed, err := b.place(ctx, m, facts, file, p, progress)
	if err != nil {
		return placement{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.placed) >= maxPlaced {
		clear(b.placed)
	}
	b.placed[key] = placed
	return placed, nil
}

// forget makes the next use of the machine's worker look for it again.
func (b *Backend) forget(key string, p profile.Profile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.placed, key+"\x00"+p.Workspace)
}

// acquire waits for the machine's slot.
func (b *Backend) acquire(ctx context.Context, key string) (release func(), err error) {
	b.mu.Lock()
	slot := b.placing[key]
	if slot == nil {
		slot = make(chan struct{}, 1)
		b.placing[key] = slot
	}
	b.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// candidate is where the worker may be put.
type candidate struct {
	// base is the directory that must be the account's and closed to others.
	base string
	// dir is where the directories of builds lie, base or below it.
	dir string
}

// candidates are the places that are tried, one after the other: a home may be
// read-only, full or mounted noexec.
func candidates(f facts, p profile.Profile) []candidate {
	in := func(dir string) candidate { return candidate{dir, path.Join(dir, "worker")} }
	all := []candidate{in(path.Join(f.cache, "caisson"))}
	if f.cache == "" || !path.IsAbs(f.cache) {
		all = nil
	}
	all = append(all,
		in(path.Join(p.Workspace, ".caisson-"+f.uid)),
		in("/var/tmp/caisson-"+f.uid),
	)
	if path.IsAbs(f.temp) {
		all = append(all, in(path.Join(f.temp, "caisson-"+f.uid)))
	}
	return append(all, in("/dev/shm/caisson-"+f.uid))
}

// build names the directory of a build.
func (b *Backend) build(file remote.Program) string {
	version := strings.Map(func(c rune) rune {
		if special(c) || c == '/' || c == ':' || c == ',' || c == '@' || c == '=' {
			return '_'
		}
		return c
	}, b.version)
	if version == "" {
		version = "unknown"
	}
	return version + "-" + file.Sum[:16]
}

// place finds the worker in one of the candidates, or puts it into the first
// that takes it.
func (b *Backend) place(ctx context.Context, m machine, f facts, file remote.Program, p profile.Profile, progress backends.Progress) (placement, error) {
	var reasons []string
	var last *tool.Error
	for _, c := range candidates(f, p) {
		placed, err := b.placeIn(ctx, m, c, file, progress)
		if err == nil {
			return placed, nil
		}
		unfit := (*unfit)(nil)
		if !errors.As(err, &unfit) {
			return placement{}, err
		}
		b.log.Debug("a place for the worker does not do", "machine", m.name, "directory", c.dir, "reason", err)
		reasons = append(reasons, c.dir+": "+unfit.why)
		if last == nil {
			last = explain(tool.Errorf(tool.BackendUnavailable, ""), unfit.why)
		}
	}
	failure := tool.Errorf(tool.BackendUnavailable, "the worker cannot be put on %s (%s)", m.name, strings.Join(reasons, "; "))
	failure.Hint = last.Hint
	if failure.Hint == "" {
		failure.Hint = `make one of these directories fit, or put a worker on that machine and name it by the profile's member "worker"`
	}
	return placement{}, failure
}

// unfit is the error for a candidate that does not do.
type unfit struct{ why string }

func (u *unfit) Error() string { return u.why }

// prepareScript makes the directory $3 and its parents, and succeeds when $2, one
// of them, is the account's and nobody else can write to it.
const prepareScript = `printf "%s\n" "$1"; umask 077; mkdir -p "$3" 2>&1 || exit 3; ` +
	`if [ -h "$2" ]; then echo "it is a link"; exit 4; fi; ` +
	`l=$(ls -ldn "$2") || exit 4; set -- "$2" "$3" $l; ` +
	`case $3 in d????w*|d???????w*) echo "others may write to it"; exit 4;; esac; ` +
	`if [ "$5" = "$(id -u)" ]; then exit 0; fi; echo "it belongs to user $5"; exit 4`

// placeIn finds the worker in a candidate or puts it there.
func (b *Backend) placeIn(ctx context.Context, m machine, c candidate, file remote.Program, progress backends.Progress) (placement, error) {
	dir := path.Join(c.dir, b.build(file))
	result, err := m.script(ctx, answerTimeout, nil, prepareScript, c.base, dir)
	if err != nil {
		return placement{}, err
	}
	if result.Code != 0 {
		return placement{}, &unfit{answered(result)}
	}
	placed := placement{program: path.Join(dir, workerName), sum: file.Sum}
	err = m.verify(ctx, placed)
	var not *notStarted
	switch {
	case err == nil:
		return placed, nil
	case errors.As(err, &not) && not.missing():
	case errors.As(err, &not) && not.refused():
		return placement{}, &unfit{noexec(not.result)}
	case errors.As(err, &not) || tool.KindOf(err) == tool.ProtocolMismatch:
		b.log.Warn("what is in the worker's place is something else, and is replaced", "machine", m.name, "reason", err)
	default:
		return placement{}, err
	}
	if err := m.probe(ctx, dir); err != nil {
		return placement{}, err
	}
	progress.Report(fmt.Sprintf("putting the worker on %s (%d MiB)", m.name, (file.Size+1<<20-1)>>20))
	if err := b.upload(ctx, m, dir, file); err != nil {
		return placement{}, err
	}
	return placed, m.verify(ctx, placed)
}

// probeScript runs a program of one line in the directory $2, which it removes
// where that fails, if it is empty.
const probeScript = `printf "%s\n" "$1"; p="$2/.probe-$1"; umask 077; ` +
	`{ printf "#!/bin/sh\n" > "$p" && chmod 700 "$p" || exit 3; "$p"; } 2>&1; r=$?; rm -f "$p"; [ $r = 0 ] || rmdir "$2"; exit $r`

// probe sees whether a directory takes a program and the system runs it there,
// before one is sent that may take minutes.
func (m machine) probe(ctx context.Context, dir string) error {
	result, err := m.script(ctx, answerTimeout, nil, probeScript, dir)
	if err != nil || result.Code == 0 {
		return err
	}
	if result.Code == exitNotExecutable {
		result.Stderr = "" // it said why on its output
		return &unfit{noexec(result)}
	}
	return &unfit{answered(result)}
}

// answered is why a script that tells so on its output has failed; what startup files
// say beside that counts only where there is nothing else.
func answered(result connection.Result) string {
	if len(bytes.TrimSpace(result.Stdout)) > 0 {
		result.Stderr = ""
	}
	return said(result)
}

func noexec(result connection.Result) string {
	return "programs there cannot be executed, as on a file system that is mounted noexec: " + said(result)
}

// verify runs the worker's program, which compares itself with what it should be
// and notes that it is used.
func (m machine) verify(ctx context.Context, p placement) error {
	_, err := m.site(ctx, answerTimeout, p.program, remote.SiteRequest{
		Action: remote.SiteSweep, Sum: p.sum, OlderThanMS: workerAge.Milliseconds(), DryRun: true,
	})
	return err
}
