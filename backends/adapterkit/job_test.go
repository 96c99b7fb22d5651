package adapterkit

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// exports are handlers of one snapshot, in small chunks.
func exports(content []byte, closed *bool) ExportHandlers {
	return ExportHandlers{
		Read: func(_ context.Context, token string, offset int64) ([]byte, bool, error) {
			if token != "t" {
				return nil, false, tool.Errorf(tool.ArtifactNotFound, "no such export")
			}
			rest := content[offset:]
			n := min(len(rest), 1000)
			return rest[:n], n == len(rest), nil
		},
		Close: func(context.Context, string) error { *closed = true; return nil },
	}
}

// TestRunJob: a job comes with its contents beside the frame, and goes the same
// way; what it left is streamed.
func TestRunJob(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 777)
	closed := false
	h := least()
	h.Exports = exports(content, &closed)
	var wrote []byte
	h.Processes.Write = func(_ context.Context, _ string, in []byte) (tool.Process, error) {
		wrote = in
		return tool.Process{ID: "p"}, nil
	}
	var asked tool.JobRequest
	h.RunJob = func(_ context.Context, r tool.JobRequest) (tool.JobResult, error) {
		asked = r
		return tool.JobResult{
			Stdout: append([]byte("out"), r.Stdin...), Stderr: []byte("err"), ExitCode: 3,
			Files: []tool.JobFile{{Path: "p", Size: int64(len(content)), Token: "t"}},
		}, nil
	}
	s := serve(t, backend(t, h), nil)
	if got := s.initialize(t); !s.Has(wire.CapJob) || !s.Has(wire.CapBulk) {
		t.Errorf("announced %v", got)
	}
	data, body := wire.NewJob(tool.JobRequest{
		Script: &tool.JobScript{Interpreter: "sh", Source: "s"}, Stdin: []byte("in\xff"), Inputs: []tool.JobInput{{Path: "f", Data: content}},
	})
	data.Actor = "a"
	reply, err := s.Call(t.Context(), wire.MethodJobRun, data, body)
	if err != nil {
		t.Fatal(err)
	}
	var done wire.JobDone
	if err := reply.Decode(&done); err != nil {
		t.Fatal(err)
	}
	got, err := done.Result(reply.Body)
	if err != nil || string(got.Stdout) != "outin\xff" || string(got.Stderr) != "err" || got.ExitCode != 3 || len(got.Files) != 1 {
		t.Errorf("it came to %+v, %v", got, err)
	}
	if asked.Script.Source != "s" || !bytes.Equal(asked.Inputs[0].Data, content) || asked.Mode != tool.Standard || asked.Actor.ID != "a" {
		t.Errorf("asked for %+v", asked)
	}
	size, stream, err := s.Stream(t.Context(), wire.MethodExportStream, wire.Export{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := io.ReadAll(stream)
	if err != nil || stream.Close() != nil || size != int64(len(content)) || !bytes.Equal(streamed, content) {
		t.Errorf("streamed %d bytes of %d, %v", len(streamed), size, err)
	}
	if _, err := s.Call(t.Context(), wire.MethodExportClose, wire.Export{Token: "t"}, nil); err != nil || !closed {
		t.Errorf("close: %v", err)
	}
	_, _, err = s.Stream(t.Context(), wire.MethodExportStream, wire.Export{Token: "none"})
	wantKind(t, err, tool.ArtifactNotFound, "no such export")
	if _, err := s.Call(t.Context(), wire.MethodProcessWrite, wire.ProcessRequest{ID: "p"}, []byte("raw\xff")); err != nil || string(wrote) != "raw\xff" {
		t.Errorf("process/write got %q, %v", wrote, err)
	}
	data.Inputs[0].Path = "../f"
	_, err = s.Call(t.Context(), wire.MethodJobRun, data, body)
	wantKind(t, err, tool.InvalidParams, "leads out")
	data.Inputs[0].Path, data.PermissionMode = "f", "root"
	_, err = s.Call(t.Context(), wire.MethodJobRun, data, body)
	wantKind(t, err, tool.InvalidParams, "mode")
}

// TestNoJobs: without a function there are none, and nothing is announced.
func TestNoJobs(t *testing.T) {
	s := serve(t, backend(t, least()), nil)
	s.initialize(t)
	if s.Has(wire.CapJob) || s.Has(wire.CapBulk) {
		t.Error("jobs are announced")
	}
	_, err := s.Call(t.Context(), wire.MethodJobRun, wire.Job{Actor: "a", Argv: []string{"true"}}, nil)
	wantKind(t, err, tool.Unsupported, "job/run")
	h := least()
	h.RunJob = func(context.Context, tool.JobRequest) (tool.JobResult, error) { return tool.JobResult{}, nil }
	if _, err := New(h); err == nil {
		t.Error("jobs without exports are accepted")
	}
}
