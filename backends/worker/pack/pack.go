// Package pack runs tool packs: executables inside the environment that offer
// tools, two actions with JSON on standard input and standard output. A pack comes
// from a host, with its source or without; what it lists and what it answers is
// checked as anybody's output is.
package pack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/plugin"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/diskfile"
)

const (
	// MaxPacks is how many packs one session may have here.
	MaxPacks = 32
	// MaxListed is how long the descriptions of all packs of a session may be together,
	// in bytes: they travel in one frame, and a model reads them all.
	MaxListed = 4 << 20
	// listTimeout is how long a pack may take to list its tools: somebody waits for
	// the session to open.
	listTimeout = 30 * time.Second
	// maxSaid is what a pack may write to standard error beside its answer, in bytes;
	// the end of it is told when it fails.
	maxSaid = 64 << 10
)

// Runner runs commands. [*process.Manager] implements it.
type Runner interface {
	Run(ctx context.Context, c process.Command) (process.Result, error)
}

// Options says what a [Set] works with.
type Options struct {
	// Dir is where sources are kept; it is made when one comes.
	Dir string
	// Runner runs the packs.
	Runner Runner
	// Check says why the workspace cannot be worked in; nil checks nothing.
	Check func() error
}

// Set is the packs of one session. Its methods may be called concurrently.
type Set struct {
	o Options

	mu    sync.Mutex
	packs []*pack
	tools map[string]*pack
	// adding is held, by having put an element in, while a pack is added.
	adding chan struct{}
}

type pack struct {
	tool.Pack
	file  string // of the source; "" for none
	tools []tool.Description
}

// New makes an empty set.
func New(o Options) *Set {
	return &Set{o: o, tools: map[string]*pack{}, adding: make(chan struct{}, 1)}
}

// ErrSource says that the source of a pack is not here yet.
var ErrSource = errors.New("the source of the pack is not here")

// Add puts the pack's source into the state directory, unless it is there, asks
// the pack what tools it has, and offers them from then on. A pack that is in the
// set already, with the same command and source, answers as before. Without a
// source that it needs it fails with [ErrSource]. A pack that cannot be had is
// [tool.Unsupported] or [tool.InvalidParams].
func (s *Set) Add(ctx context.Context, p tool.Pack, source []byte) ([]tool.Description, error) {
	select {
	case s.adding <- struct{}{}:
		defer func() { <-s.adding }()
	case <-ctx.Done():
		return nil, tool.Errorf(tool.EndKind(ctx), "adding a pack was cancelled: %w", context.Cause(ctx))
	}
	if err := check(p); err != nil {
		return nil, err
	}
	known, all := s.find(p.Name)
	switch {
	case known != nil && (!slices.Equal(known.Command, p.Command) || known.SHA256 != p.SHA256):
		return nil, tool.Errorf(tool.InvalidParams, "there is another pack called %q here", p.Name).WithPath("name")
	case known != nil:
		return known.tools, nil
	case all >= MaxPacks:
		return nil, tool.Errorf(tool.InvalidParams, "%d packs are as many as a session may have", all).WithPath("name")
	}
	added := &pack{Pack: p}
	if p.SHA256 != "" {
		var err error
		if added.file, err = s.put(p, source); err != nil {
			return nil, err
		}
	}
	var err error
	if added.tools, err = s.list(ctx, added); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if size := s.listed(added); size > MaxListed {
		return nil, tool.Errorf(tool.Unsupported, "with the pack %q the tools of packs take %d bytes to describe, and may take %d", p.Name, size, MaxListed)
	}
	for _, t := range added.tools {
		if other := s.tools[t.Name]; other != nil {
			return nil, tool.Errorf(tool.InvalidParams, "the packs %q and %q both have a tool called %s", other.Name, p.Name, t.Name)
		}
	}
	for _, t := range added.tools {
		s.tools[t.Name] = added
	}
	s.packs = append(s.packs, added)
	return added.tools, nil
}

// listed is how long the descriptions of all packs are with one more. The caller
// holds mu.
func (s *Set) listed(more *pack) (size int) {
	for _, p := range append(slices.Clone(s.packs), more) {
		for _, t := range p.tools {
			size += len(t.Name) + len(t.Description) + len(t.InputSchema)
		}
	}
	return size
}

func check(p tool.Pack) error {
	switch {
	case p.Name == "":
		return tool.Errorf(tool.InvalidParams, "a pack needs a name").WithPath("name")
	case len(p.Command) == 0 || p.Command[0] == "":
		return tool.Errorf(tool.InvalidParams, "the pack %q names no program", p.Name).WithPath("command")
	case p.SHA256 != "" && (len(p.SHA256) != 64 || strings.Trim(p.SHA256, "0123456789abcdef") != ""):
		return tool.Errorf(tool.InvalidParams, "%q is not a SHA-256 in hex", p.SHA256).WithPath("sha256")
	}
	return nil
}

// find finds a pack, and says how many there are.
func (s *Set) find(name string) (*pack, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.packs {
		if p.Name == name {
			return p, len(s.packs)
		}
	}
	return nil, len(s.packs)
}

// put makes sure that the source is in the state directory, for its owner to run
// and nobody to write. The file has the program's name, which it may look at.
func (s *Set) put(p tool.Pack, source []byte) (string, error) {
	dir := filepath.Join(s.o.Dir, p.SHA256)
	file := filepath.Join(dir, sourceName(p))
	switch err := verify(file, p.SHA256); {
	case err == nil:
		return file, nil
	case source == nil:
		return "", ErrSource
	}
	if sum := sha256.Sum256(source); hex.EncodeToString(sum[:]) != p.SHA256 {
		return "", tool.Errorf(tool.InvalidParams, "the source of the pack %q does not have the hash that it should", p.Name).WithPath("sha256")
	}
	if err := process.WritePrograms(func() error { return write(dir, file, source) }); err != nil {
		return "", tool.Errorf(tool.Internal, "keep the source of the pack %q: %w", p.Name, err).WithDisk(s.o.Dir)
	}
	return file, nil
}

// sourceName is the name of the source's file.
func sourceName(p tool.Pack) string {
	if marked(p.Command) {
		return "source"
	}
	name := filepath.Base(filepath.FromSlash(p.Command[0]))
	if name == "." || name == ".." || name == string(filepath.Separator) {
		return "source"
	}
	return name
}

func marked(command []string) bool {
	return slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, tool.SourceMark) })
}

// write puts the file in its place in one step.
func write(dir, file string, source []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(source)
	if err == nil {
		err = f.Chmod(0o500)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// verify says why the file is not the source of the hash.
func verify(file, sum string) error {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > tool.MaxPackSource:
		return errors.New("it is not the file that was put there")
	}
	f, _, err := diskfile.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, tool.MaxPackSource+1)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return errors.New("its content is another one")
	}
	return nil
}

// argv is the pack's command. A source is checked again each time: what runs in
// the mode unconfined could change it.
func (p *pack) argv() ([]string, error) {
	if p.file == "" {
		return p.Command, nil
	}
	if err := verify(p.file, p.SHA256); err != nil {
		return nil, tool.Errorf(tool.EnvironmentLost, "the source of the pack %q is not as it was put here: %w", p.Name, err).
			WithHint("Something in the environment changed it. Open a new session.").WithPath(p.file)
	}
	argv := slices.Clone(p.Command)
	if !marked(argv) {
		argv[0] = p.file
		return argv, nil
	}
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], tool.SourceMark, p.file)
	}
	return argv, nil
}

// list asks the pack what tools it has, in the environment's default mode, as a
// call that names none.
func (s *Set) list(ctx context.Context, p *pack) ([]tool.Description, error) {
	argv, err := p.argv()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	r, err := s.o.Runner.Run(limited, process.Command{
		Argv: argv, Stdin: plugin.ListRequest(), MaxOutputBytes: plugin.MaxList + maxSaid, Alone: true,
	})
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = tool.Errorf(tool.Unsupported, "it did not list its tools within %s", listTimeout)
		}
		return nil, s.about(p, err)
	}
	if r.ExitCode != 0 {
		return nil, tool.Errorf(tool.Unsupported, "the pack %q did not list its tools: %s", p.Name, plugin.Ended(r.ExitCode, r.Signal, r.Stderr))
	}
	if r.StdoutTruncated {
		return nil, tool.Errorf(tool.Unsupported, "the pack %q answered list with %d bytes, and may answer %d", p.Name, r.StdoutBytes, plugin.MaxList)
	}
	tools, err := plugin.ParseList(r.Stdout)
	if err != nil {
		return nil, tool.Errorf(tool.Unsupported, "the pack %q cannot be used: %w", p.Name, err)
	}
	return tools, nil
}

// about names the pack that an error of its start is about.
func (s *Set) about(p *pack, err error) error {
	var e *tool.Error
	if !errors.As(err, &e) {
		return tool.Errorf(tool.Internal, "the pack %q: %w", p.Name, err)
	}
	named := *e
	named.Message, named.Err = fmt.Sprintf("the pack %q: %s", p.Name, e.Message), err
	if e.Kind == tool.InvalidParams {
		named.Kind, named.Path = tool.Unsupported, "" // no member of what a model has sent
	}
	return &named
}

// Has reports whether a pack has a tool of the name.
func (s *Set) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[name] != nil
}

// Beside are the descriptions of all packs, and of those of others that no pack
// has a tool of the name of, sorted by name.
func (s *Set) Beside(others []tool.Description) []tool.Description {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(others), func(d tool.Description) bool { return s.tools[d.Name] != nil })
	for _, p := range s.packs {
		all = append(all, p.tools...)
	}
	slices.SortFunc(all, func(a, b tool.Description) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Call runs a tool of a pack, confined in the call's mode, and ends everything
// that it started. What the tool says is a result, and so is an answer that cannot
// be understood. It fails as [Runner] does; with [tool.EnvironmentLost] when the
// pack's source was changed.
func (s *Set) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	s.mu.Lock()
	p := s.tools[r.Name]
	s.mu.Unlock()
	if p == nil {
		return tool.Result{}, tool.Errorf(tool.ToolNotFound, "no pack has a tool %q", r.Name)
	}
	if s.o.Check != nil {
		if err := s.o.Check(); err != nil {
			return tool.Result{}, err
		}
	}
	if a := bytes.TrimSpace(r.Arguments); len(a) > 0 && a[0] != '{' {
		return tool.Result{}, tool.Errorf(tool.InvalidParams, "the arguments of %s are not a JSON object", r.Name).WithPath("arguments")
	}
	stdin, err := plugin.RunRequest(r.Name, r.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	argv, err := p.argv()
	if err != nil {
		return tool.Result{}, err
	}
	most := int64(plugin.MaxAnswer)
	if r.MaxOutputBytes > 0 {
		most = min(most, r.MaxOutputBytes)
	}
	out, err := s.o.Runner.Run(ctx, process.Command{
		Argv: argv, Stdin: stdin, Actor: r.Actor, Mode: r.Mode, MaxOutputBytes: most, Alone: true,
	})
	if err != nil {
		return tool.Result{}, s.about(p, err)
	}
	return answer(r.Name, out, most), nil
}

// answer is the result that a run came to.
func answer(name string, out process.Result, most int64) tool.Result {
	if out.StdoutTruncated {
		return tool.Failed(fmt.Sprintf("%s answered more than the %d bytes that a call may return", name, most))
	}
	result, err := plugin.ParseAnswer(out.Stdout)
	denied := ""
	if out.SandboxDenied {
		denied = fmt.Sprintf(" (the permission mode %s may have denied it something)", out.Mode)
	}
	switch {
	case err == nil && (out.ExitCode == 0 || result.IsError):
		return result
	case out.ExitCode != 0:
		return tool.Failed(name + " failed: " + plugin.Ended(out.ExitCode, out.Signal, out.Stderr) + denied)
	}
	return tool.Failed(name + " cannot be understood: " + err.Error() + denied)
}
