package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// host starts the adapter of one session, for package remote.
type host struct {
	backend *Backend
	argv    []string
	grace   time.Duration
	secrets secrets

	mu      sync.Mutex
	current *stream // the latest; nil before the first
}

var _ remote.Host = (*host)(nil)

func newHost(b *Backend, binding backends.Binding) *host {
	h := &host{backend: b, argv: binding.Profile.Command, grace: binding.Profile.ShutdownTimeout}
	if h.grace <= 0 {
		h.grace = defaultShutdown
	}
	values := []string{binding.Secrets.Token}
	for _, value := range binding.Secrets.Environment {
		if !strings.Contains(binding.Profile.Workspace, value) { // it stands in every path
			values = append(values, value)
		}
	}
	h.secrets = newSecrets(values)
	return h
}

func (h *host) name() string {
	if len(h.argv) == 0 {
		return "without a name"
	}
	return h.argv[0]
}

// Create makes sure that there is such a program. The adapter itself makes the
// environment when it is told to initialize.
func (h *host) Create(context.Context, backends.Binding, backends.Progress) error {
	_, err := find(h.argv)
	return err
}

// Attach knows only the environments that it has started the adapter of.
func (h *host) Attach(context.Context, backends.Binding) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		return nil
	}
	return tool.Errorf(tool.EnvironmentLost, "the adapter %s ended with the service that had started it, and the environment with it", h.name()).
		WithHint("delete the session and open a new one")
}

// Dial starts the adapter, once the one before it has ended: a session never has
// two.
func (h *host) Dial(ctx context.Context, _ backends.Binding) (remote.Stream, error) {
	h.mu.Lock()
	former := h.current
	h.mu.Unlock()
	if former != nil {
		select {
		case <-former.program.Gone():
		case <-ctx.Done():
			return remote.Stream{}, tool.Errorf(tool.BackendUnavailable, "the adapter %s has not ended yet, and a session has one at a time: %w", h.name(), context.Cause(ctx)).
				WithHint("it has the profile's shutdown_timeout_ms to end; then it is killed")
		}
	}
	s, err := h.start()
	if err != nil {
		return remote.Stream{}, err
	}
	h.mu.Lock()
	h.current = s
	h.mu.Unlock()
	return h.connection(s), nil
}

// connection is the stream, for whoever speaks the protocol over it.
func (h *host) connection(s *stream) remote.Stream {
	return remote.Stream{ReadWriteCloser: s, Said: s.stderr.String, Redact: h.secrets.redact}
}

// start starts the adapter. It gets the variables of the service, as a program
// that the user starts; those of the profile are for commands and travel in
// initialize.
func (h *host) start() (*stream, error) {
	path, err := find(h.argv)
	if err != nil {
		return nil, err
	}
	s := &stream{name: h.name(), stderr: newTail(h.secrets), grace: h.grace}
	s.program, err = program.Start(program.Options{
		Argv:   append([]string{path}, h.argv[1:]...),
		Dir:    home(),
		Stderr: s.stderr,
		Grace:  h.grace,
	})
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the adapter %s cannot be started: %w", h.name(), err).
			WithHint("is it a program that you can run? see the profile's command")
	}
	return s, nil
}

// end waits until the adapter has ended, and says how when that was not in
// order. It does not wait for longer than ctx.
func (h *host) end(ctx context.Context) error {
	h.mu.Lock()
	s := h.current
	h.mu.Unlock()
	if s == nil {
		return nil
	}
	select {
	case <-s.program.Gone():
		return s.Close()
	default:
	}
	select {
	case <-s.program.Gone():
		return s.Close()
	case <-ctx.Done():
		return tool.Errorf(tool.Timeout, "the adapter %s has not ended yet", h.name())
	}
}

// Remove has nothing to remove; see [Backend.Remove].
func (h *host) Remove(context.Context, backends.Binding) error { return nil }

// home is where an adapter runs: not in an opened folder, from which a stranger
// could slip a module or a configuration under a program that is trusted.
func home() string {
	if dir, err := os.UserHomeDir(); err == nil && filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}

// find looks a program up: an absolute path, or a name in PATH. What is relative
// depends on where the service happens to run.
func find(argv []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", tool.Errorf(tool.ConfigInvalid, "the profile's command names no program").WithPath("command")
	}
	name := argv[0]
	if strings.ContainsAny(name, `/\`) && !filepath.IsAbs(name) {
		return "", tool.Errorf(tool.ConfigInvalid, "the adapter %s is neither an absolute path nor a name in PATH", name).
			WithHint("write the whole path in the profile's command").WithPath("command")
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	failure := tool.Errorf(tool.BackendUnavailable, "the adapter %s cannot be found: %w", name, err).WithPath("command")
	if errors.Is(err, os.ErrPermission) {
		return "", failure.WithHint("make the file executable")
	}
	return "", failure.WithHint("write the whole path in the profile's command, or install the program where the service's PATH finds it")
}
