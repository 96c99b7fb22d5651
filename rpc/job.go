package rpc

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func jobMethods() map[string]method {
	return map[string]method{
		protocol.MethodJobRun: {handle: bind((*request).jobRun), class: asking},
	}
}

// jobRun runs a job to its end.
func (r *request) jobRun(ctx context.Context, p *protocol.JobRunParams) (*protocol.JobRunResult, error) {
	constraints, err := r.constraints(p.Constraints)
	if err != nil {
		return nil, err
	}
	job, err := toJob(p)
	if err != nil {
		return nil, err
	}
	progress := r.begin(p.WorkDoneToken, "Running a job")
	defer progress.end()
	result, err := r.sessions().RunJob(ctx, session.JobRequest{
		SessionID:   p.SessionID,
		Profile:     p.Profile,
		Job:         job,
		Constraints: constraints,
		Confirm:     r.confirm(),
		RunID:       p.RunID,
		NodeName:    p.NodeName,
		Progress:    progress.steps(),
	})
	if err != nil {
		return nil, err
	}
	return JobData(result, p.Encoding), nil
}

// toJob is what runs. What a session refuses too is refused there.
func toJob(p *protocol.JobRunParams) (backends.JobRequest, error) {
	job := backends.JobRequest{
		ID: p.CallID, Argv: p.Argv, CWD: p.CWD, Stdin: []byte(p.Stdin), Environment: p.Env,
		Actor: toActor(p.Actor), Mode: tool.Mode(p.PermissionMode), Collect: p.Collect,
	}
	if p.Script != nil {
		job.Script = &backends.JobScript{Interpreter: p.Script.Interpreter, Source: p.Script.Source}
	}
	for _, path := range slices.Sorted(maps.Keys(p.InputFiles)) {
		file := p.InputFiles[path]
		in := backends.JobInput{Path: path, Data: file.Base64}
		switch {
		case (file.Text == nil) == (file.Base64 == nil):
			return job, invalidParams("inputFiles."+path, "an input file has either text or base64")
		case file.Text != nil:
			in.Data = []byte(*file.Text)
		}
		job.Inputs = append(job.Inputs, in)
	}
	return job, nil
}

// JobData is what a job came to as the protocol has it, its output in the
// encoding, utf8 for none.
func JobData(result session.JobResult, encoding protocol.Encoding) *protocol.JobRunResult {
	out := &protocol.JobRunResult{
		Encoding: encoding, ExitCode: result.ExitCode, Signal: result.Signal,
		TimedOut: result.TimedOut, Truncated: result.Truncated,
		Artifacts: make([]protocol.Artifact, len(result.Artifacts)), FilesDropped: result.FilesDropped,
		FuelRemaining: result.FuelRemaining,
	}
	for i, a := range result.Artifacts {
		out.Artifacts[i] = toArtifact(a.Artifact)
	}
	if encoding == protocol.EncodingBase64 {
		out.Stdout = base64.StdEncoding.EncodeToString(result.Stdout)
		out.Stderr = base64.StdEncoding.EncodeToString(result.Stderr)
		return out
	}
	out.Encoding = protocol.EncodingUTF8
	out.Lossy = !utf8.Valid(result.Stdout) || !utf8.Valid(result.Stderr)
	out.Stdout = strings.ToValidUTF8(string(result.Stdout), string(utf8.RuneError))
	out.Stderr = strings.ToValidUTF8(string(result.Stderr), string(utf8.RuneError))
	return out
}
