package process

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

// modes holds the thread that starts commands of each permission mode, made
// when first needed.
type modes struct {
	mu        sync.Mutex
	launchers map[tool.Mode]*confine.Launcher
}

// mode is the mode that a request for it gets.
func (m *Manager) mode(asked tool.Mode) (tool.Mode, error) {
	if asked == "" {
		return m.o.DefaultMode, nil
	}
	if !asked.Valid() {
		return "", tool.Errorf(tool.InvalidParams, "there is no permission mode %q", asked).WithPath("permission_mode").
			WithHint("the modes are read_only, standard and unconfined")
	}
	if !asked.Within(m.o.Ceiling) {
		return "", tool.Errorf(tool.Denied, "the permission mode %s is above this environment's ceiling %s", asked, m.o.Ceiling).
			WithHint("max_permission_mode in the profile sets the ceiling")
	}
	return asked, nil
}

// policy is what mode lets commands write.
func (m *Manager) policy(mode tool.Mode, more []string) confine.Policy {
	return confine.Policy{
		Mode: mode, Root: m.o.Root, Temp: m.tempDir(mode), ABI: m.o.ABI,
		Writable: slices.Concat(m.o.WritablePaths, more),
	}
}

func (m *Manager) tempDir(mode tool.Mode) string { return filepath.Join(m.registry.temp, string(mode)) }

// launcher is the thread that starts commands of the mode. A command with
// writable paths of its own gets a thread of its own, which release ends; that
// must be after the command has ended.
func (m *Manager) launcher(mode tool.Mode, more []string) (l *confine.Launcher, release func(), err error) {
	if err := os.MkdirAll(m.tempDir(mode), 0o700); err != nil {
		return nil, nil, tool.Errorf(tool.Internal, "make the temporary directory of commands: %w", err).WithPath(m.tempDir(mode))
	}
	if len(more) > 0 && mode == tool.Standard && m.policy(mode, nil).Confines() {
		l, err := confine.NewLauncher(m.policy(mode, more))
		if err != nil {
			return nil, nil, err
		}
		return l, l.Close, nil
	}
	m.modes.mu.Lock()
	defer m.modes.mu.Unlock()
	if l := m.modes.launchers[mode]; l != nil {
		return l, func() {}, nil
	}
	if l, err = confine.NewLauncher(m.policy(mode, nil)); err != nil {
		return nil, nil, err
	}
	if m.modes.launchers == nil {
		m.modes.launchers = make(map[tool.Mode]*confine.Launcher)
	}
	m.modes.launchers[mode] = l
	return l, func() {}, nil
}

// closeAll ends the threads. What they started and still runs is killed by
// the kernel.
func (s *modes) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.launchers {
		l.Close()
	}
	s.launchers = nil
}
