//go:build linux

package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestSyntaxErrors: a line that no shell understands gets the shell's own words,
// and nothing of it runs; one that only the shell understands is denied.
func TestSyntaxErrors(t *testing.T) {
	at := binding(t)
	at.Profile.DeniedCommands = []string{"rm -rf /"}
	env := open(t, at)
	ran := filepath.Join(at.WorkspaceFolder, "ran")
	for line, words := range map[string]string{ // bash 5 ends with 127 for what is wrong inside of $( )
		"echo 'no end":                 "bash: -c: line 1: unexpected EOF while looking for matching `''",
		"touch ran\n)":                 "bash: -c: line 2: syntax error near unexpected token `)'",
		"touch ran; (":                 "syntax error",
		"touch ran\nif true; then":     "unexpected end of file",
		"touch ran\necho \"it's\n$((1": "bash: -c: line",
		"for i in $(touch ran; do":     "bash: -c: line 1: syntax error near unexpected token `do'",
	} {
		for _, background := range []bool{false, true} {
			r, err := try(t, env, "bash", map[string]any{"command": line, "run_in_background": background})
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			var got struct {
				Command  string
				ExitCode int `json:"exit_code"`
				Stderr   string
				Process  string `json:"promoted_process_id"`
			}
			if err := json.Unmarshal(r.StructuredContent, &got); err != nil {
				t.Fatal(err)
			}
			if got.Command != line || got.ExitCode == 0 || !strings.Contains(got.Stderr, words) || got.Process != "" {
				t.Errorf("%q gives %+v", line, got)
			}
		}
		_, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: line, Command: line, Actor: at.Session})
		var e *tool.Error
		if !errors.As(err, &e) || e.Kind != tool.InvalidParams || e.Path != "command" || !strings.Contains(e.Message, words) {
			t.Errorf("a process of %q: %v", line, err)
		}
	}
	for _, line := range []string{"touch ran\ncat <<X\nno end"} {
		_, err := try(t, env, "bash", map[string]any{"command": line})
		wantKind(t, line, err, tool.Denied)
		_, err = env.Processes().Start(t.Context(), tool.StartRequest{OperationID: line, Command: line, Actor: at.Session})
		wantKind(t, "a process of "+line, err, tool.Denied)
	}
	if r, err := try(t, env, "bash", map[string]any{"command": "(", "cwd": "none"}); err != nil || !r.IsError {
		t.Errorf("other arguments are checked as ever: %+v, %v", r, err)
	}
	if r, err := try(t, env, "bash", map[string]any{"command": "(", "comand": "x"}); err != nil || !r.IsError {
		t.Errorf("other arguments are checked as ever: %+v, %v", r, err)
	}
	if list, err := env.Processes().List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("processes %+v, %v", list, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the beginning of a line that cannot be checked was run")
	}
}
