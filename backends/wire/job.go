package wire

import (
	"bytes"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Job is the data of job/run ([CapJob]). What its files hold is the request's
// body, one after another: the script's source, what the program reads from its
// standard input, and the inputs in their order.
type Job struct {
	ID   string   `json:"id,omitempty"`
	Argv []string `json:"argv,omitempty"`
	// Script stands where Argv does not.
	Script     *JobScript `json:"script,omitempty"`
	StdinBytes int64      `json:"stdin_bytes,omitempty"`
	Inputs     []JobInput `json:"inputs,omitempty"`
	// CWD is a directory of the workspace; empty is a fresh one.
	CWD         string            `json:"cwd,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	// Actor and ActorKind are as in [Execute], whether or not there is [CapActors].
	Actor          string         `json:"actor"`
	ActorKind      tool.ActorKind `json:"actor_kind,omitempty"`
	PermissionMode tool.Mode      `json:"permission_mode,omitempty"`
	// The limits are none where they are 0.
	TimeoutMS      int64 `json:"timeout_ms,omitempty"`
	CPUTimeMS      int64 `json:"cpu_time_ms,omitempty"`
	MemoryBytes    int64 `json:"memory_bytes,omitempty"`
	MaxOutputBytes int64 `json:"max_output_bytes,omitempty"`
	// Collect are globs of what comes back.
	Collect []string `json:"collect,omitempty"`
}

// JobScript says what runs the script, and how many bytes of the body it is.
type JobScript struct {
	Interpreter string `json:"interpreter"`
	Bytes       int64  `json:"bytes"`
}

// JobInput is one input file, and how many bytes of the body it has.
type JobInput struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// JobDone is the reply to job/run. Its body is standard output, StdoutBytes of
// it, and then standard error.
type JobDone struct {
	StdoutBytes int64 `json:"stdout_bytes"`
	// ExitCode is -1 where a signal ended the program.
	ExitCode  int    `json:"exit_code"`
	Signal    string `json:"signal,omitempty"`
	TimedOut  bool   `json:"timed_out,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Files are exports: the host fetches and closes each.
	Files []JobFile `json:"files,omitempty"`
	// FilesDropped counts those that were not collected.
	FilesDropped  int     `json:"files_dropped,omitempty"`
	FuelRemaining *uint64 `json:"fuel_remaining,omitempty"`
}

// JobFile is one file that a job left.
type JobFile struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	Token string `json:"token"`
}

// NewJob is a request as it is sent: its data and its body. The actor and the
// mode are left to the caller.
func NewJob(r tool.JobRequest) (Job, []byte) {
	j := Job{
		ID: r.ID, Argv: r.Argv, StdinBytes: int64(len(r.Stdin)), CWD: r.CWD, Environment: r.Environment,
		TimeoutMS: Milliseconds(r.Timeout), CPUTimeMS: Milliseconds(r.CPUTime),
		MemoryBytes: r.Memory, MaxOutputBytes: r.MaxOutputBytes, Collect: r.Collect,
	}
	parts := make([][]byte, 0, 2+len(r.Inputs))
	if r.Script != nil {
		j.Script = &JobScript{Interpreter: r.Script.Interpreter, Bytes: int64(len(r.Script.Source))}
		parts = append(parts, []byte(r.Script.Source))
	}
	parts = append(parts, r.Stdin)
	for _, in := range r.Inputs {
		j.Inputs = append(j.Inputs, JobInput{Path: in.Path, Bytes: int64(len(in.Data))})
		parts = append(parts, in.Data)
	}
	return j, bytes.Join(parts, nil)
}

// Milliseconds is d as the wire has it: 0 is none, so that less than one is one.
func Milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(1, d.Milliseconds())
}

// Request is what j and its body ask for, checked ([tool.JobRequest.Check]). The
// contents are parts of body. Actor and mode are as the frame says.
func (j *Job) Request(body []byte) (tool.JobRequest, error) {
	r := tool.JobRequest{
		ID: j.ID, Argv: j.Argv, CWD: j.CWD, Environment: j.Environment,
		Actor: tool.Actor{ID: j.Actor, Kind: j.ActorKind}, Mode: j.PermissionMode,
		Timeout: time.Duration(j.TimeoutMS) * time.Millisecond, CPUTime: time.Duration(j.CPUTimeMS) * time.Millisecond,
		Memory: j.MemoryBytes, MaxOutputBytes: j.MaxOutputBytes, Collect: j.Collect,
	}
	if j.Actor == "" {
		return r, tool.Errorf(tool.InvalidParams, "job/run: the actor is missing").WithPath("actor")
	}
	bad := false
	take := func(n int64) []byte {
		if n < 0 || n > int64(len(body)) {
			bad, n = true, 0
		}
		part := body[:n:n]
		body = body[n:]
		return part
	}
	if j.Script != nil {
		r.Script = &tool.JobScript{Interpreter: j.Script.Interpreter, Source: string(take(j.Script.Bytes))}
	}
	r.Stdin = take(j.StdinBytes)
	for _, in := range j.Inputs {
		r.Inputs = append(r.Inputs, tool.JobInput{Path: in.Path, Data: take(in.Bytes)})
	}
	if bad || len(body) > 0 {
		return r, tool.Errorf(tool.InvalidParams, "job/run: the body is not as long as its parts")
	}
	return r, r.Check()
}

// NewJobDone is a result as it is sent: its data and its body.
func NewJobDone(r tool.JobResult) (JobDone, []byte) {
	d := JobDone{
		StdoutBytes: int64(len(r.Stdout)), ExitCode: r.ExitCode, Signal: r.Signal,
		TimedOut: r.TimedOut, Truncated: r.Truncated, FilesDropped: r.FilesDropped, FuelRemaining: r.FuelRemaining,
	}
	for _, f := range r.Files {
		d.Files = append(d.Files, JobFile(f))
	}
	return d, slices.Concat(r.Stdout, r.Stderr)
}

// Result is what d and its body say. The output is part of body.
func (d *JobDone) Result(body []byte) (tool.JobResult, error) {
	r := tool.JobResult{
		ExitCode: d.ExitCode, Signal: clip(d.Signal), TimedOut: d.TimedOut, Truncated: d.Truncated,
		FilesDropped: max(0, d.FilesDropped), FuelRemaining: d.FuelRemaining,
	}
	if d.StdoutBytes < 0 || d.StdoutBytes > int64(len(body)) {
		return r, tool.Errorf(tool.ProtocolMismatch, "job/run: the reply's standard output is longer than its body")
	}
	r.Stdout, r.Stderr = body[:d.StdoutBytes:d.StdoutBytes], body[d.StdoutBytes:]
	for _, f := range d.Files {
		if f.Path == "" || f.Token == "" || f.Size < 0 {
			return r, tool.Errorf(tool.ProtocolMismatch, "job/run: the reply names a file without its path, size or token")
		}
		r.Files = append(r.Files, tool.JobFile(f))
	}
	return r, nil
}
