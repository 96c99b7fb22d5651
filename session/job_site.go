package session

import (
	"context"
	"reflect"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// jobSite is where a job runs, and within which limits: of each the least that the
// call, the session, the project and the user say.
type jobSite struct {
	place          *place
	mode           tool.Mode
	timeout        time.Duration
	cpuTime        time.Duration // 0 is none
	memory         int64         // bytes for each process; 0 is none
	maxOutputBytes int64
}

// siteOf decides where a job runs. Constraints that only something new can have, and
// another profile, give it an environment of its own, which exists once it is used;
// the caller calls leave at the end.
func (s *live) siteOf(ctx context.Context, r JobRequest) (_ jobSite, leave func(), err error) {
	home, err := s.placeFor(tool.GroupShell, shellJob)
	if err != nil {
		return jobSite{}, nil, err
	}
	c, err := r.Constraints.forJob("constraints", s.saved.JobLimits) // which never change
	if err != nil {
		return jobSite{}, nil, err
	}
	if home, err = s.siteOn(home, c, r.Job.CWD != ""); err != nil {
		return jobSite{}, nil, err
	}
	leave = func() {}
	if home.saved.OneOff {
		leave = func() { s.removeOneOff(context.WithoutCancel(ctx), home) }
	}
	p := home.saved.Profile
	site := jobSite{
		place: home, cpuTime: c.CPUTime, memory: c.Memory,
		timeout: lower(p.Timeout, c.Timeout), maxOutputBytes: lower(p.MaxOutputBytes, c.MaxOutputBytes),
	}
	if site.mode, err = modeWithin(p, r.Job.Mode, r.Job.Actor, c); err != nil {
		leave()
		return jobSite{}, nil, err
	}
	return site, leave, nil
}

// siteOn is the place for a job with these constraints: home, another one of the
// session, or one for the job alone.
func (s *live) siteOn(home *place, c Constraints, inWorkspace bool) (*place, error) {
	home, own, err := s.siteProfile(home, c)
	if err != nil || own == nil {
		return home, err
	}
	limited := *own
	if inWorkspace {
		there, err := s.m.workspaceOf(store.Place{Profile: limited}, s.folder)
		if err != nil {
			return nil, err
		}
		here, err := s.m.workspaceOf(store.Place{Profile: home.profile(), Environment: home.identity()}, s.folder)
		if err != nil {
			return nil, err
		}
		if there.host == "" || there != here {
			return nil, at(limited, tool.Errorf(tool.Unsupported, "with these constraints the job would have an environment of its own, which has not the session's workspace").
				WithPath("cwd").WithHint("Leave cwd out and send the files along as inputFiles, or leave the constraints out."))
		}
	}
	return s.addOneOff(limited)
}

// siteProfile says where a job with these constraints goes: to the place that it returns
// or, where there is a profile, to an environment of its own on that.
func (s *live) siteProfile(home *place, c Constraints) (*place, *profile.Profile, error) {
	base := home.saved.Profile
	other := c.Profile != "" && c.Profile != base.Name
	if other {
		if p := placeOn(s.lasting(), c.Profile); p != nil {
			home, base, other = p, p.saved.Profile, false
		}
	}
	if other {
		var err error
		if base, err = s.profileNow(c.Profile); err != nil {
			return nil, nil, err
		}
	}
	limited, err := c.narrowed(base)
	if err != nil {
		return nil, nil, at(base, under("constraints", err))
	}
	if !other && reflect.DeepEqual(limited.Written, base.Written) {
		return home, nil, nil
	}
	return home, &limited, nil
}

// judgedAt is the place by whose directory the guard judges a job in the workspace: its
// site, or a likeness of it while that does not exist. home stands for what cannot be:
// the job fails, and says why.
func (s *live) judgedAt(home *place, r JobRequest) *place {
	c, err := r.Constraints.forJob("constraints", s.saved.JobLimits)
	if err != nil {
		return home
	}
	site, own, err := s.siteProfile(home, c)
	switch {
	case err != nil:
		return home
	case own != nil:
		return newPlace(s, store.Place{Profile: own.OneOff()})
	}
	return site
}

// profileNow is a profile of the configuration as it is now, within what the
// project's file allows now, and within all that the session was held to when it was
// made.
func (s *live) profileNow(name string) (profile.Profile, error) {
	c, err := s.m.o.Config.Load()
	if err != nil {
		return profile.Profile{}, known(err)
	}
	var project config.Project
	if s.folder != "" {
		if project, err = config.LoadProject(s.folder, c); err != nil {
			return profile.Profile{}, known(err)
		}
	}
	p, err := s.m.profile(c, name)
	if err != nil {
		return p, err
	}
	bind := binder{m: s.m, c: c, project: project, session: &store.Session{ID: s.id, Folder: s.folder}}
	bound, err := bind.place(p)
	if err != nil {
		return p, at(p, err)
	}
	limited := bound.Profile
	for _, l := range s.saved.Limits { // which never change
		if limited, err = within(limited, l); err != nil {
			return p, at(p, ofSession(err))
		}
	}
	return limited, nil
}
