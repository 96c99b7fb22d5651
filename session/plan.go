package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// plan decides all about a new session: its own place, those that overrides send
// tools to, and the limits of each. It creates nothing.
func (m *Manager) plan(ctx context.Context, r OpenRequest) (store.Session, error) {
	c, err := m.o.Config.Load()
	if err != nil {
		return store.Session{}, known(err)
	}
	uri, folder, err := workspace(r.Workspace)
	if err != nil {
		return store.Session{}, err
	}
	limits, forTools, forJobs, err := r.Constraints.forSession("constraints")
	if err != nil {
		return store.Session{}, err
	}
	var project config.Project
	if folder != "" {
		if err := isFolder(folder); err != nil {
			return store.Session{}, invalid("workspace", "the workspace cannot be opened: %w", err)
		}
		if project, err = config.LoadProject(folder, c); err != nil {
			return store.Session{}, known(err)
		}
	}
	chosen, err := m.choose(c, project, r, folder != "")
	if err != nil {
		return store.Session{}, err
	}
	now := m.o.Now()
	s := store.Session{
		ID: r.SessionID, Workspace: uri, Folder: folder,
		Labels: maps.Clone(r.Labels), CreatedAt: now, LastUsedAt: now,
		ToolLimits: forTools, JobLimits: forJobs,
	}
	for _, l := range []profile.Limits{project.Limits, beside(limits)} {
		if l != (profile.Limits{}) {
			s.Limits = append(s.Limits, savedLimits(l))
		}
	}
	if s.Guard, err = m.savedGuard(c, project); err != nil {
		return store.Session{}, known(err)
	}
	bind := binder{m: m, c: c, project: project, limits: limits, session: &s}
	if s.Place, err = bind.place(chosen); err != nil {
		return store.Session{}, at(chosen, err)
	}
	if r.alone {
		s.Job = true
		return s, nil
	}
	if err := bind.overrides(); err != nil {
		return store.Session{}, err
	}
	if err := bind.jobs(r.Constraints); err != nil {
		return store.Session{}, err
	}
	if err := bind.tools(ctx); err != nil {
		return store.Session{}, err
	}
	return s, nil
}

// binder makes the places of a session that is planned.
type binder struct {
	m       *Manager
	c       *config.Config
	project config.Project
	limits  profile.Limits
	session *store.Session
}

// place binds the session to an environment of the profile, within the project's
// limits and the session's.
func (b *binder) place(p profile.Profile) (store.Place, error) {
	if err := enforceable(p); err != nil {
		return store.Place{}, err
	}
	p, err := p.Constrain(b.project.Limits)
	if err != nil {
		return store.Place{}, ofProject(err)
	}
	if p, err = p.Constrain(b.limits); err != nil {
		return store.Place{}, under("constraints", err)
	}
	if p, err = p.InFolder(b.session.Folder); err != nil {
		return store.Place{}, err
	}
	return store.Place{Profile: p, Environment: p.Identity(b.m.store.ID(), b.session.ID)}, nil
}

// overrides saves what the user's overrides send elsewhere, and binds the session to
// the environments that they need.
func (b *binder) overrides() error {
	s := b.session
	for _, o := range b.c.Overrides {
		s.Overrides = append(s.Overrides, store.Override(o))
		if slices.ContainsFunc(s.All(), func(p store.Place) bool { return p.Profile.Name == o.Profile }) {
			continue
		}
		p, err := b.m.profile(b.c, o.Profile)
		if err != nil {
			return err
		}
		other := binder{b.m, b.c, b.project, beside(b.limits), s}
		place, err := other.place(p)
		if err != nil {
			return at(p, ofOverride(o, err))
		}
		s.Places = append(s.Places, place)
	}
	if len(s.Places) == 0 {
		s.Overrides = nil // nothing goes elsewhere
		return nil
	}
	return b.m.oneDirectory(s)
}

// jobs refuses constraints for jobs that no job of the session could have.
func (b *binder) jobs(c Constraints) error {
	s := b.session
	if s.JobLimits == nil {
		return nil
	}
	to, err := newRoutes(s.Overrides, s.All())
	if err != nil {
		return err
	}
	p := s.All()[to.find(toolName{tool.GroupShell, shellJob})].Profile
	if c.Profile != "" && c.Profile != p.Name {
		if p, err = b.m.profile(b.c, c.Profile); err != nil {
			return err
		}
	}
	_, err = c.narrowed(p)
	return at(p, under("constraints", err))
}

// beside are a session's limits as they hold for the environments that overrides
// name. The image is that of the session's own; a network is a ceiling, which a
// narrower one keeps.
func beside(l profile.Limits) profile.Limits {
	l.Image = ""
	if l.Network != "none" {
		l.Network = ""
	}
	if l.TmpfsNoexec != nil && !*l.TmpfsNoexec {
		l.TmpfsNoexec = nil
	}
	return l
}

// ofOverride says of an error about a place which override needs it.
func ofOverride(o config.Override, err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	moved := *e
	moved.Message = "the override of " + o.Pattern + ": " + e.Message
	return &moved
}

// choose finds the profile of a new session: what the request names, what the
// project chose, the configured default. A session that belongs to no folder
// and names none is local.
func (m *Manager) choose(c *config.Config, project config.Project, r OpenRequest, folder bool) (profile.Profile, error) {
	name := r.Profile
	if asked := r.Constraints.ownProfile(); asked != "" {
		if name != "" && name != asked {
			return profile.Profile{}, invalid("constraints.profile", "%q clashes with the profile %q", asked, name)
		}
		name = asked
	}
	switch {
	case name != "":
	case !folder:
		name = profile.Local
	case project.Profile != "":
		name = project.Profile
	default:
		name = c.Default
	}
	return m.profile(c, name)
}

// profile finds a profile of the configuration, on a backend that there is.
func (m *Manager) profile(c *config.Config, name string) (profile.Profile, error) {
	p, ok := c.Profile(name)
	if !ok {
		err := tool.Errorf(tool.ProfileNotFound, "there is no profile %q", name)
		if near := profile.Nearest(name, c.Names()); near != "" {
			return p, err.WithHint("Did you mean %q?", near)
		}
		return p, err.WithHint("The profiles are %s.", strings.Join(c.Names(), ", "))
	}
	if _, ok := m.o.Registry.Get(p.Backend); !ok {
		return p, at(p, notBuilt(p.Backend))
	}
	return p, nil
}

// enforceable refuses what is configured and cannot be enforced: it would look
// like protection and be none.
func enforceable(p profile.Profile) error {
	if len(p.AllowedHosts) > 0 {
		return tool.Errorf(tool.Unsupported, "profile %q: allowed_hosts cannot be enforced by this build", p.Name).
			WithHint("Choose the network none or enabled.").WithPath("allowed_hosts")
	}
	return nil
}
