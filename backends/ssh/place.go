package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

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

// facts are what a machine says about itself.
type facts struct {
	os, arch string // in Go's words
	system   string // in its own
	uid      string
	cache    string // the user's cache directory
	temp     string
}

// lookScript prints the facts, a line each, after the line $1.
const lookScript = `printf "%s\n" "$1" "$(uname -s)" "$(uname -m)" "$(id -u)" "${XDG_CACHE_HOME:-$HOME/.cache}" "${TMPDIR:-/tmp}"`

// look asks the machine what it is. It needs nothing there but a POSIX shell.
func (m machine) look(ctx context.Context) (facts, error) {
	result, err := m.script(ctx, answerTimeout, nil, lookScript)
	lines := strings.Split(string(result.Stdout), "\n")
	if errors.Is(err, remote.ErrNoMark) || err == nil && len(lines) < 5 {
		e := tool.Errorf(tool.BackendUnavailable, "%s does not run commands: it ended with %d: %s", m.name, result.Code, said(result))
		if hint := limited(said(result)); hint != "" {
			return facts{}, e.WithHint("%s", hint)
		}
		return facts{}, e.WithHint("the account needs a login shell that runs commands, /bin/sh, and no ForceCommand: try ssh with the command \"uname -a\"")
	}
	if err != nil {
		return facts{}, err
	}
	if lines[0] == "" || lines[2] == "" {
		return facts{}, tool.Errorf(tool.BackendUnavailable, "%s runs no uname, or no id: %s", m.name, said(connection.Result{Stderr: result.Stderr})).
			WithHint("have the account's startup files leave a PATH with the system's programs")
	}
	f := facts{system: lines[0] + " " + lines[1], uid: lines[2], cache: lines[3], temp: lines[4]}
	f.os, f.arch = goos(lines[0]), goarch(lines[1])
	if f.os == "" {
		return f, tool.Errorf(tool.Unsupported, "%s runs %s: no worker of Caisson's runs there", m.name, f.system).
			WithHint("use a machine that runs Linux")
	}
	return f, nil
}

// goos is Go's word for what uname -s prints, or empty.
func goos(system string) string {
	switch system {
	case "Linux":
		return "linux"
	case "Darwin":
		return "darwin"
	case "FreeBSD", "OpenBSD", "NetBSD":
		return strings.ToLower(system)
	}
	return ""
}

// goarch is Go's word for what uname -m prints.
func goarch(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	case "i386", "i486", "i586", "i686":
		return "386"
	case "armv6l", "armv7l", "armv8l":
		return "arm"
	}
	return machine
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

// upload sends the program under a name of its own, and has it check its hash
// and take its place itself: two services may do that at the same time. It is
// sent by sftp, and where that does not work, or leads somewhere else, through a
// shell.
func (b *Backend) upload(ctx context.Context, m machine, dir string, file remote.Program) error {
	temporary := path.Join(dir, ".upload-"+random())
	defer m.discard(ctx, temporary)
	err := m.install(ctx, temporary, file, m.sendSFTP)
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.log.Debug("an upload by sftp failed", "machine", m.name, "reason", err)
	m.discard(ctx, temporary)
	err = m.install(ctx, temporary, file, m.sendShell)
	if not := (*notStarted)(nil); errors.As(err, &not) {
		if !not.refused() {
			return &unfit{"the worker is there and ends at once, as under a limit of memory: " + said(not.result)}
		}
		return &unfit{noexec(not.result)}
	}
	return err
}

// install sends the program and has it take its place.
func (m machine) install(ctx context.Context, path string, file remote.Program, send func(context.Context, string, io.Reader, int64) error) error {
	content, err := os.Open(file.Path)
	if err != nil {
		return tool.Errorf(tool.Internal, "the worker cannot be read: %w", err)
	}
	defer content.Close()
	if err := send(ctx, path, content, file.Size); err != nil {
		return err
	}
	_, err = m.site(ctx, answerTimeout, path, remote.SiteRequest{Action: remote.SiteInstall, Sum: file.Sum, Name: workerName})
	return err
}

// sendSFTP writes a file by the sftp subsystem. One that takes nothing for a while is
// given up: a shell may do better.
func (m machine) sendSFTP(ctx context.Context, path string, content io.Reader, size int64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	stalled := time.AfterFunc(sftpTimeout, cancel)
	defer stalled.Stop()
	client, err := m.SFTP(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	f, err := client.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.ReadFrom(&movingReader{content, size, func() { stalled.Reset(sftpTimeout) }})
	if err == nil {
		err = f.Chmod(0o700)
	}
	return errors.Join(err, f.Close())
}

// movingReader tells of each read, and how much there is, for which the client has
// several requests open at once.
type movingReader struct {
	io.Reader
	size  int64
	moved func()
}

// Size is how much there is, in bytes.
func (r *movingReader) Size() int64 { return r.size }

// Read reads.
func (r *movingReader) Read(p []byte) (int, error) {
	r.moved()
	return r.Reader.Read(p)
}

// sendShell writes a file through the account's shell.
func (m machine) sendShell(ctx context.Context, path string, content io.Reader, _ int64) error {
	result, err := m.script(ctx, uploadTimeout, content, `printf "%s\n" "$1"; umask 077; cat > "$2" && chmod 700 "$2"`, path)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return &unfit{said(result)}
	}
	return nil
}

// discard removes what an upload left, even when ctx has ended. What cannot be
// removed is small and private, and goes with the directory of its build.
func (m machine) discard(ctx context.Context, path string) {
	_, _ = m.script(context.WithoutCancel(ctx), cleanupTimeout, nil, `printf "%s\n" "$1"; rm -f "$2"`, path)
}
