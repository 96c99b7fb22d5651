package session

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// shellJob is the name of a job among executions.
const shellJob = "shell.job"

// JobRequest asks for one job: in a session, or in one of its own, on a profile,
// that is gone afterwards. One of SessionID and Profile stands.
type JobRequest struct {
	SessionID string
	Profile   string
	// Job is what runs. Its limits are those of Constraints and the profile; its ID
	// is the call's, "" makes one.
	Job         backends.JobRequest
	Constraints Constraints
	// Confirm is as in [CallRequest].
	Confirm Confirm
	// RunID and NodeName are passed through to the events.
	RunID    string
	NodeName string
	Progress backends.Progress
}

// JobResult is what a job came to, and what it left.
type JobResult struct {
	Stdout, Stderr []byte
	// ExitCode is -1 where a signal ended the program; Signal names it then.
	ExitCode  int
	Signal    string
	TimedOut  bool
	Truncated bool
	// Artifacts are the files that were collected, by their paths.
	Artifacts []JobArtifact
	// FilesDropped counts files that were not; Stderr says why where that was a full disk.
	FilesDropped int
	// FuelRemaining is what was left of a WebAssembly guest's fuel; nil elsewhere.
	FuelRemaining *uint64
}

// JobArtifact is a file that a job left, as an artifact.
type JobArtifact struct {
	// Path is relative to the directory that the job ran in.
	Path string
	artifacts.Artifact
}

// RunJob runs one program to its end. It is a call like a tool's, named
// "shell.job", and goes where shell.bash goes. A program that fails, is killed or
// runs out of time is a result; an environment that runs no jobs is
// [tool.Unsupported].
func (m *Manager) RunJob(ctx context.Context, r JobRequest) (JobResult, error) {
	if err := r.check(); err != nil {
		return JobResult{}, err
	}
	if r.SessionID == "" {
		return m.runJobAlone(ctx, r)
	}
	return m.runJob(ctx, r)
}

func (r *JobRequest) check() error {
	if (r.SessionID == "") == (r.Profile == "") {
		return invalid("sessionId", "a job runs in a session or on a profile: write one of sessionId and profile")
	}
	if len(r.Job.ID) > maxCallID {
		return invalid("callId", "a call's id has at most %d bytes", maxCallID)
	}
	if r.Constraints.Scope == scopeTools {
		return tool.Errorf(tool.Unsupported, "constraints of scope tools cannot be put on a job").WithPath("constraints.scope")
	}
	if err := r.Job.Check(); err != nil {
		return err
	}
	return checkActor(r.SessionID, r.Job.Actor)
}

// runJob runs a job in its session.
func (m *Manager) runJob(ctx context.Context, r JobRequest) (JobResult, error) {
	s, err := m.use(r.SessionID)
	if err != nil {
		return JobResult{}, err
	}
	p, err := s.placeFor(tool.GroupShell, shellJob)
	if err != nil {
		return JobResult{}, err
	}
	x := Execution{
		Tool: shellJob, CallID: r.Job.ID, Actor: r.Job.Actor, RunID: r.RunID, NodeName: r.NodeName,
		admission: ofJob(r.Job, r.Constraints, r.Confirm),
	}
	if r.Job.CWD != "" {
		x.admission.judgedAt = s.judgedAt(p, r)
	}
	var result JobResult
	err = s.execute(ctx, p, x, func(ctx context.Context, x *Execution) error {
		site, leave, err := s.siteOf(ctx, r)
		if err != nil {
			return err
		}
		defer leave()
		if err := s.move(ctx, p, site.place, x); err != nil {
			return err
		}
		r.Job.ID = x.CallID
		result, err = site.run(ctx, r)
		x.admission.output = int64(len(result.Stdout) + len(result.Stderr))
		return err
	})
	return result, err
}

// run does what a job asks for.
func (site jobSite) run(ctx context.Context, r JobRequest) (JobResult, error) {
	p, job := site.place, r.Job
	job.Actor = tool.Actor{ID: p.s.actorID(job.Actor), Kind: job.Actor.Kind}
	job.Mode, job.Timeout, job.MaxOutputBytes = site.mode, site.timeout, site.maxOutputBytes
	job.CPUTime, job.Memory = site.cpuTime, site.memory
	var result JobResult
	err := p.use(ctx, use{progress: r.Progress}, func(env backends.Environment, _ time.Duration) error {
		runner, ok := env.(backends.JobRunner)
		if !ok {
			return tool.Errorf(tool.Unsupported, "the environment of the profile %q runs no jobs", p.saved.Profile.Name).
				WithHint("Choose a profile whose environment runs jobs.")
		}
		done, err := runner.RunJob(ctx, job)
		if err != nil {
			return whereabouts(ctx, env, job.CWD, err)
		}
		result = JobResult{
			Stdout: done.Stdout, Stderr: done.Stderr, ExitCode: done.ExitCode, Signal: done.Signal,
			TimedOut: done.TimedOut, Truncated: done.Truncated, FilesDropped: done.FilesDropped, FuelRemaining: done.FuelRemaining,
		}
		return final(p.publishJob(ctx, env, job, done.Files, &result))
	})
	return result, err
}

// publishJob makes artifacts of what a job left. What cannot be one for its name
// or size, or for want of room, is dropped; after any other failure the rest is let go
// of.
func (p *place) publishJob(ctx context.Context, env backends.Environment, job backends.JobRequest, files []backends.JobFile, to *JobResult) error {
	names := artifactNames(files)
	var noRoom error // of the first
	unkept := 0
	for i, f := range files {
		source := f.Path
		if job.CWD != "" {
			source = path.Join(job.CWD, f.Path)
		}
		a, _, err := p.publish(ctx, env, source, export{Token: f.Token, Name: names[i], Size: f.Size})
		switch {
		case err == nil:
			to.Artifacts = append(to.Artifacts, JobArtifact{Path: f.Path, Artifact: a})
		case errors.Is(err, artifacts.ErrInvalid), errors.Is(err, artifacts.ErrTooLarge):
			to.FilesDropped++
		case tool.IsDiskFull(err):
			// Nothing of it is left; a smaller one may still find room.
			to.FilesDropped++
			noRoom, unkept = cmp.Or(noRoom, err), unkept+1
		default:
			p.letGo(ctx, env, files[i+1:])
			return err
		}
	}
	if noRoom != nil {
		to.Stderr = tool.NotCollected(to.Stderr, unkept, noRoom)
	}
	return nil
}

// letGo closes the exports of files that nobody wants.
func (p *place) letGo(ctx context.Context, env backends.Environment, files []backends.JobFile) {
	ctx = context.WithoutCancel(ctx)
	for _, f := range files {
		stream, err := env.Export(ctx, f.Token)
		if err == nil {
			err = stream.Close()
		}
		if err != nil {
			p.s.m.log.Debug("a file of a job could not be let go of", "session", p.s.id, "error", err)
			return // nor the others: the connection is lost, and they with it
		}
	}
}

// artifactNames are the files' base names, and where one would come twice the
// whole path, so that two files of one content stay two artifacts. A whole path that is
// another's name has underscores before it.
func artifactNames(files []backends.JobFile) []string {
	const coded = "bytes:" // before a path that is no text, percent-encoded
	count := map[string]int{}
	names := make([]string, len(files))
	for i, f := range files {
		raw, isCoded := strings.CutPrefix(f.Path, coded)
		names[i] = path.Base(raw)
		if isCoded {
			names[i] = coded + names[i]
		}
		count[names[i]]++
	}
	for i, f := range files {
		if count[names[i]] == 1 {
			continue
		}
		raw, isCoded := strings.CutPrefix(f.Path, coded)
		before := ""
		if isCoded {
			before = coded
		}
		for name := strings.ReplaceAll(raw, "/", "_"); ; name = "_" + name {
			if names[i] = before + name; count[names[i]] == 0 || name == raw {
				break
			}
		}
		count[names[i]]++
	}
	return names
}
