package process

import (
	"crypto/sha256"
	"encoding/hex"
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

// license is what a command of the actor may do that asks for a mode.
func (m *Manager) license(asked tool.Mode, a tool.Actor) (license, error) {
	if a.Kind != tool.ActorSideChat {
		mode, err := m.mode(asked)
		return license{mode: mode}, err
	}
	if a.ID == "" {
		return license{}, tool.Errorf(tool.InvalidParams, "a side chat needs a name").WithPath("actor")
	}
	return license{mode: tool.ReadOnly, side: a.ID}, nil
}

// license is what a command may do.
type license struct {
	mode tool.Mode
	// side is the side chat whose command it is, "" for other actors.
	side string
	more []string // writable paths of its own
	// place is a directory of its own, nil for most; confined says that it may
	// write that and not the workspace.
	place    *Place
	confined bool
}

// policy is what l lets commands write.
func (m *Manager) policy(l license) confine.Policy {
	p := confine.Policy{
		Mode: l.mode, Root: m.o.Root, Temp: m.tempDir(l), ABI: m.o.ABI,
		Writable: slices.Concat(m.o.WritablePaths, l.more),
		Apart:    m.o.Shared || l.mode == tool.ReadOnly,
	}
	if l.place == nil || !p.Confines() {
		return p
	}
	p.Temp, p.Apart = l.place.Dir, true
	if l.confined {
		p.Root = l.place.Work
	}
	return p
}

// tempDir is the temporary directory of the mode's commands, or of a side chat,
// which must not write what others read, or of one command that has a place.
func (m *Manager) tempDir(l license) string {
	if l.place != nil {
		return l.place.Temp
	}
	if l.side == "" {
		return filepath.Join(m.registry.temp, string(l.mode))
	}
	sum := sha256.Sum256([]byte(l.side))
	return filepath.Join(m.registry.temp, "side-"+hex.EncodeToString(sum[:8]))
}

// launcher is the thread that starts commands of the license. A command with a
// place or writable paths of its own, and one of a side chat, which must not
// signal those of others, gets a thread of its own, which release ends; that must
// be after the command has ended.
func (m *Manager) launcher(w license) (l *confine.Launcher, release func(), err error) {
	p := m.policy(w)
	if err := os.MkdirAll(p.Temp, 0o700); err != nil {
		return nil, nil, tool.Errorf(tool.Internal, "make the temporary directory of commands: %w", err).WithPath(p.Temp).WithDisk(p.Temp)
	}
	if p.Confines() && (w.side != "" || w.place != nil || len(w.more) > 0 && w.mode == tool.Standard) {
		l, err := confine.NewLauncher(p)
		if err != nil {
			return nil, nil, err
		}
		return l, l.Close, nil
	}
	m.modes.mu.Lock()
	defer m.modes.mu.Unlock()
	if l := m.modes.launchers[w.mode]; l != nil {
		return l, func() {}, nil
	}
	p = m.policy(license{mode: w.mode})
	if l, err = confine.NewLauncher(p); err != nil {
		return nil, nil, err
	}
	if m.modes.launchers == nil {
		m.modes.launchers = make(map[tool.Mode]*confine.Launcher)
	}
	m.modes.launchers[w.mode] = l
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
