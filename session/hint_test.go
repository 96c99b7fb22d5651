package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// hinting is a backend whose environments answer as workers do that know nothing of
// sessions.
type hinting struct{ backends.Backend }

func (h hinting) Open(ctx context.Context, b backends.Binding, p backends.Progress) (backends.Environment, error) {
	env, err := h.Backend.Open(ctx, b, p)
	if err != nil {
		return nil, err
	}
	return hintingEnvironment{env.(*doubleEnvironment)}, nil
}

type hintingEnvironment struct{ *doubleEnvironment }

const whatItIs = `what it is. "hint":"x" is in it`

func (e hintingEnvironment) Call(_ context.Context, r tool.Request) (tool.Result, error) {
	if r.Name == "process" {
		return tool.Result{}, tool.Errorf(tool.Denied, "no").WithHint(tool.HintStandard)
	}
	raw, err := json.Marshal(map[string]any{"hint": "read_only lets nothing through" + tool.HintStandardBehind, "a": whatItIs, "z": whatItIs + tool.HintStandardBehind})
	return tool.Result{StructuredContent: raw}, err
}

func (e hintingEnvironment) RunJob(_ context.Context, r backends.JobRequest) (backends.JobResult, error) {
	return backends.JobResult{}, noDirectory(r.CWD)
}

func (e hintingEnvironment) Processes() backends.Processes {
	return noStart{e.doubleEnvironment.Processes()}
}

// noStart starts nothing in a directory that is not there.
type noStart struct{ backends.Processes }

func (noStart) Start(_ context.Context, r tool.StartRequest) (tool.Process, error) {
	return tool.Process{}, noDirectory(r.CWD)
}

func noDirectory(dir string) error {
	return tool.Errorf(tool.InvalidParams, "the directory %q cannot be used", dir).WithPath("cwd")
}

func (e hintingEnvironment) ReadDirectory(_ context.Context, dir string) ([]backends.FileInfo, error) {
	switch dir {
	case ".":
		return []backends.FileInfo{{Name: "src", Type: "directory"}, {Name: ".git", Type: "directory"}, {Name: "a b\n", Type: "directory"}, {Name: "f", Type: "file"}}, nil
	case "src":
		var list []backends.FileInfo
		for _, name := range strings.Split("ihgfedcba", "") {
			list = append(list, backends.FileInfo{Name: name, Type: "directory"})
		}
		return list, nil
	case "empty":
		return nil, nil
	}
	return nil, errors.New("there is none")
}

func newHintingRig(t *testing.T) *rig {
	r := newRig(t)
	r.localBackend = hinting{r.world.backend(profile.Local)}
	r.dockerBackend = hinting{r.world.backend(profile.Docker)}
	r.write(r.config, `{"execution_environments": {"profiles": {
		"closed": {"backend": "docker", "image": "a", "max_permission_mode": "read_only"}}}}`)
	return r
}

// What only a wider mode lets a call do is said with what is allowed in the session.
func TestHintsAskForWhatIsAllowed(t *testing.T) {
	r := newHintingRig(t)
	s := r.start()
	readOnly := session.Constraints{Filesystem: "read_only"}
	toolsOnly := session.Constraints{Filesystem: "read_only", Scope: "tools"}
	local := s.open(session.OpenRequest{})
	for name, c := range map[string]struct {
		v     session.Session
		q     session.CallRequest
		want  string
		wider bool // it may ask for more by itself
	}{
		"the mode":                       {local, session.CallRequest{Mode: tool.ReadOnly}, "Call it in the mode standard.", true},
		"the call's constraint":          {local, session.CallRequest{Constraints: readOnly}, "without the constraint filesystem", false},
		"a side chat":                    {local, session.CallRequest{Actor: tool.Actor{ID: "y", Kind: tool.ActorSideChat}}, "The main agent may", false},
		"the profile":                    {s.open(session.OpenRequest{Workspace: r.folder, Profile: "closed"}), session.CallRequest{}, "needs another session", false},
		"the session's constraint":       {s.open(session.OpenRequest{Constraints: readOnly}), session.CallRequest{}, "needs another session", false},
		"the session's, for tools alone": {s.open(session.OpenRequest{Constraints: toolsOnly}), session.CallRequest{}, "needs another session", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.SessionID = c.v.ID
			c.q.Name, c.q.Arguments = "write_file", json.RawMessage(`{}`)
			_, err := s.Call(t.Context(), c.q)
			wantKind(t, err, tool.Denied)
			if got := hintOf(err); !strings.Contains(got, c.want) {
				t.Errorf("of what the session refuses: %q", got)
			}
			c.q.Name = "process"
			_, err = s.Call(t.Context(), c.q)
			if got := hintOf(err); c.wider && got != tool.HintStandard || !c.wider && !strings.Contains(got, c.want) {
				t.Errorf("of what the environment refuses: %q", got)
			}
			c.q.Name = "bash"
			result, err := s.Call(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Hint, A, Z string }
			if err := json.Unmarshal(result.StructuredContent, &got); err != nil {
				t.Fatal(err)
			}
			if c.wider != strings.HasSuffix(got.Hint, tool.HintStandardBehind) || !c.wider && !strings.Contains(got.Hint, c.want) {
				t.Errorf("of a command: %q", got.Hint)
			}
			if got.A != whatItIs || got.Z != whatItIs+tool.HintStandardBehind || !strings.HasPrefix(got.Hint, "read_only lets nothing through") {
				t.Errorf("the rest is another: %+v", got)
			}
		})
	}
	_, err := s.WriteFile(t.Context(), s.open(session.OpenRequest{Constraints: readOnly}).ID, "a", nil)
	if got := hintOf(err); !strings.Contains(got, "needs another session") {
		t.Errorf("of a file: %q", got)
	}
}

// A directory to work in that is not there is told with those that are.
func TestMissingDirectoryNamesOthers(t *testing.T) {
	r := newHintingRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "local"})
	for cwd, want := range map[string]string{
		"scr":          `The directories in the workspace are "a b\n", src.`,
		"src/x":        "The directories in src are a, b, c, d, e, f, g, h and 1 more.",
		"src/x/y/../z": "The directories in src are a",
		"empty/x":      "There is no directory in empty.",
		"/other/x":     "relative to the workspace: . is the workspace itself.",
	} {
		job := leaving(v)
		job.Job.CWD = cwd
		_, err := s.RunJob(t.Context(), job)
		wantKind(t, err, tool.InvalidParams)
		if got := hintOf(err); !strings.Contains(got, want) {
			t.Errorf("a job in %s: %q", cwd, got)
		}
		_, err = s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Argv: []string{"true"}, CWD: cwd})
		wantKind(t, err, tool.InvalidParams)
		if got := hintOf(err); !strings.Contains(got, want) {
			t.Errorf("a process in %s: %q", cwd, got)
		}
	}
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Hint
	}
	return ""
}
