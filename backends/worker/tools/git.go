package tools

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
)

type gitArgs struct {
	Subcommand string   `json:"subcommand" required:""`
	Args       []string `json:"args"`
}

// gitEnvironment keeps git from waiting for somebody: no pager, no editor, no
// question. Whoever needs an editor's work gives it as arguments.
func gitEnvironment(mode tool.Mode) map[string]string {
	env := map[string]string{
		"GIT_TERMINAL_PROMPT": "0",
		"GIT_PAGER":           "cat",
		"PAGER":               "cat",
		"GIT_EDITOR":          "true",
		"GIT_SEQUENCE_EDITOR": "true",
		"GIT_MERGE_AUTOEDIT":  "no",
		"GCM_INTERACTIVE":     "never",
		"SSH_ASKPASS_REQUIRE": "never",
	}
	if mode == tool.ReadOnly {
		// git status would try to write what it learned into the index.
		maps.Copy(env, map[string]string{"GIT_OPTIONAL_LOCKS": "0"})
	}
	return env
}

func (s *Set) git(ctx context.Context, c *call, a gitArgs) (tool.Result, error) {
	if strings.TrimSpace(a.Subcommand) == "" {
		return tool.Result{}, refuse("subcommand is empty")
	}
	if strings.ContainsAny(a.Subcommand, " \t\n") {
		return tool.Result{}, refuse("subcommand is %q; give one word, and the rest as args", a.Subcommand)
	}
	size := 0
	for _, arg := range append([]string{a.Subcommand}, a.Args...) {
		if strings.IndexByte(arg, 0) >= 0 {
			return tool.Result{}, refuse("an argument holds a NUL byte, which no command line can")
		}
		size += len(arg) + 1
	}
	if len(a.Args) > maxGitArgs || size >= maxCommand {
		return tool.Result{}, refuse("git got %d arguments with %d bytes, at most %d and %d are possible", len(a.Args), size, maxGitArgs, maxCommand-1)
	}
	// The workspace may belong to another user, as a mounted one does. Exactly
	// this directory is trusted, for this command only.
	argv := []string{"git"}
	if dir := s.o.Root.Dir(); !strings.HasSuffix(dir, "/*") { // which git takes for everything beside it
		argv = append(argv, "-c", "safe.directory="+dir)
	}
	argv = append(append(argv, a.Subcommand), a.Args...)
	line := strings.Join(append([]string{"git", a.Subcommand}, a.Args...), " ")
	return s.run(ctx, c, line, process.Command{
		Argv: argv, CWD: s.o.Root.Dir(), Env: gitEnvironment(c.mode), Timeout: defaultTimeout * time.Second,
	})
}
