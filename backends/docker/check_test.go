package docker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// playing is an environment that answers one way.
type playing struct {
	backends.Environment
	answer string
	err    error
}

// Call answers.
func (p playing) Call(context.Context, tool.Request) (tool.Result, error) {
	return tool.Result{StructuredContent: json.RawMessage(p.answer)}, p.err
}

// Only a refusal by Landlock counts as one.
func TestConfined(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer playing
		kind   tool.Kind // of the error; empty: it is confined
		says   string
	}{
		{"refused", playing{answer: `{"exit_code":1,"stderr":"Permission denied","sandbox_denied":true}`}, "", "was refused"},
		{"no shell", playing{err: tool.Errorf(tool.Unsupported, "there is no shell")}, "", "no shell"},
		{"written", playing{answer: `{"exit_code":0}`}, tool.Internal, "could write outside"},
		{"nothing can be written", playing{answer: `{"exit_code":3,"stderr":"No space left","sandbox_denied":false}`}, tool.Internal, "No space left"},
		{"not even its own", playing{answer: `{"exit_code":3,"stderr":"Permission denied","sandbox_denied":true}`}, tool.Internal, "Permission denied"},
		{"something else fails", playing{answer: `{"exit_code":1,"stderr":"Read-only file system"}`}, tool.Internal, "Read-only"},
		{"the shell is killed", playing{answer: `{"exit_code":137}`}, tool.Internal, "137"},
		{"no Landlock", playing{err: tool.Errorf(tool.Unsupported, "this system has no Landlock")}, tool.Unsupported, "Landlock"},
		{"no answer", playing{err: errors.New("broken")}, tool.Internal, "broken"},
	} {
		detail, err := confined(t.Context(), test.answer)
		if err != nil {
			detail = err.Error()
		}
		if (err == nil) != (test.kind == "") || err != nil && tool.KindOf(err) != test.kind || !strings.Contains(detail, test.says) {
			t.Errorf("%s: %q, %v", test.name, detail, err)
		}
	}
}

// What is proved is proved of the shell's own words, here without Landlock.
func TestProof(t *testing.T) {
	for _, shell := range []string{"sh", "bash"} {
		above := t.TempDir()
		run := func(temp string) (string, int) {
			cmd := exec.CommandContext(t.Context(), shell, "-c", proof)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			return string(out), cmd.ProcessState.ExitCode()
		}
		temp := filepath.Join(above, "temp dir")
		if said, code := run(temp); code != 3 {
			t.Errorf("%s: without the temporary directory: %d, %s", shell, code, said)
		}
		if err := os.Mkdir(temp, 0o700); err != nil {
			t.Fatal(err)
		}
		if said, code := run(temp); code != 0 || said != "" {
			t.Errorf("%s: unconfined: %d, %s", shell, code, said)
		}
		// A directory cannot be written as a file.
		if err := os.Mkdir(filepath.Join(above, ".caisson-proof"), 0o700); err != nil {
			t.Fatal(err)
		}
		if said, code := run(temp); code != 1 || !strings.Contains(said, "irectory") {
			t.Errorf("%s: where the write fails: %d, %s", shell, code, said)
		}
		if left := must(os.ReadDir(temp))(t); len(left) > 0 {
			t.Errorf("%s: left: %v", shell, left)
		}
	}
}

// Where a container has no Landlock, the check fails for a profile that needs it, and for
// no other.
func TestCheckWithoutLandlock(t *testing.T) {
	b := newBackend(t, must(build("older"))(t))
	image := dockertest.UseShell(t)
	for _, test := range []struct {
		mode     tool.Mode
		writable []string
		ok       bool
		says     string
	}{
		{tool.Standard, nil, false, "Landlock"},
		{tool.ReadOnly, []string{"/"}, false, "Landlock"},
		{tool.Standard, []string{"/"}, true, "not used"},
		{tool.Unconfined, nil, true, "not used"},
	} {
		p := newBinding(t, b, image).Profile
		p.PermissionMode, p.MaxPermissionMode, p.WritablePaths = test.mode, tool.Unconfined, test.writable
		health := b.Check(t.Context(), p)
		last := health.Checks[len(health.Checks)-1]
		if health.OK != test.ok || last.Name != "confinement" || last.OK != test.ok ||
			!strings.Contains(last.Detail, test.says) || !test.ok && last.Hint == "" {
			t.Errorf("%s, writable %q: %+v", test.mode, test.writable, health)
		}
	}
	if got := left(t, checkStore); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}
