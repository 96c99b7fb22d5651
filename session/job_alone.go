package session

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// jobLabel is the label of a session that exists for one job.
const jobLabel = "caisson.job"

// deleteBudget is how long the removal of such a session may take.
const deleteBudget = 90 * time.Second

// runJobAlone runs a job in a session for it alone. What it left stays.
func (m *Manager) runJobAlone(ctx context.Context, r JobRequest) (result JobResult, err error) {
	m.reapJobs()
	c := r.Constraints
	s, _, err := m.Open(ctx, OpenRequest{
		Profile: r.Profile, Labels: map[string]string{jobLabel: "true"}, alone: true, Deferred: true,
		Constraints: Constraints{Network: c.Network, CPUs: c.CPUs, Image: c.Image, TmpfsNoexec: c.TmpfsNoexec, Profile: c.Profile},
	}, r.Progress)
	if err != nil {
		return JobResult{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteBudget)
		defer cancel()
		left, derr := m.Delete(ctx, s.ID, false)
		if derr != nil || left != "" {
			// The job is over, and what came of it is worth more than this.
			m.log.Warn("the session of a job was not removed", "session", s.ID, "left", left, "error", derr)
		}
	}()
	r.SessionID, r.Constraints = s.ID, Constraints{
		Timeout: c.Timeout, MaxOutputBytes: c.MaxOutputBytes, Filesystem: c.Filesystem, Memory: c.Memory, CPUTime: c.CPUTime,
	}
	return m.runJob(ctx, r)
}

// reapJobs deletes, once in a service, the sessions of jobs that a service was killed
// in the middle of: nobody knows their ids, and what they keep would stay.
func (m *Manager) reapJobs() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return
	}
	m.reap.Do(func() {
		m.work.Go(func() {
			all, err := m.store.List()
			if err != nil {
				m.log.Warn("sessions of earlier jobs were not looked for", "error", err)
				return
			}
			for _, s := range all {
				if s.Err != nil || !s.Job {
					continue
				}
				if err := m.reapJob(m.ctx, s.ID); err != nil && m.ctx.Err() == nil {
					m.log.Warn("the session of an earlier job was not removed", "session", s.ID, "error", err)
				}
			}
		})
	})
}

// reapJob deletes the session of a job, unless that runs, here or in another service.
func (m *Manager) reapJob(ctx context.Context, id string) error {
	release, err := m.claim(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	if m.find(id) != nil {
		return nil
	}
	l, err := m.own(ctx, id)
	if kind := tool.KindOf(err); kind == tool.SessionBusy || kind == tool.SessionNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteBudget)
	defer cancel()
	left, err := m.deleteOwned(ctx, l, false)
	if left != "" {
		m.log.Warn("something of the session of an earlier job is left", "session", id, "left", left)
	}
	return err
}
