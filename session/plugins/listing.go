package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/plugin"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/diskfile"
)

// listing is what a module listed, on disk.
type listing struct {
	Format int                `json:"format"`
	SHA256 string             `json:"sha256"`
	Tools  []tool.Description `json:"tools"`
}

// listing reads what the module of the hash listed; [fs.ErrNotExist] when nobody
// has asked it yet.
func (s *Store) listing(sum string) ([]tool.Description, error) {
	var l listing
	if err := readJSON(s.path("listings", sum+".json"), &l); err != nil {
		return nil, err
	}
	if l.Format != format || l.SHA256 != sum {
		return nil, fs.ErrNotExist // of another version: it is asked again
	}
	return l.Tools, nil
}

// Tools are what the module of the hash offers. It is asked once: the answer of a
// module is as unchangeable as the module. runner gives the environment to ask it
// in, and called is what errors call the module. One that does not list its tools as it
// should is [tool.InvalidParams].
func (s *Store) Tools(ctx context.Context, sum, called string, runner func() (backends.ModuleRunner, error)) ([]tool.Description, error) {
	tools, err := s.listing(sum)
	if !errors.Is(err, fs.ErrNotExist) {
		return tools, err
	}
	file, err := s.Blob(sum)
	if err != nil {
		return nil, err
	}
	r, err := runner()
	if err != nil {
		return nil, err
	}
	if tools, err = ask(ctx, r, file, sum); err != nil {
		return nil, named(called, file, sum, err)
	}
	raw, err := json.Marshal(listing{format, sum, tools})
	if err != nil {
		return nil, s.broken(err)
	}
	return tools, s.locked(ctx, func() error { return diskfile.WriteFile(s.path("listings", sum+".json"), raw, 0o600) })
}

// ask runs the action list of a module.
func ask(ctx context.Context, r backends.ModuleRunner, file, sum string) ([]tool.Description, error) {
	out, err := r.RunModule(ctx, backends.ModuleRequest{
		ID: "list-" + sum[:12], Path: file, SHA256: sum, Stdin: plugin.ListRequest(),
		Mode: tool.ReadOnly, Timeout: listTimeout, MaxOutputBytes: plugin.MaxList + maxStderr,
	})
	if err != nil {
		return nil, err
	}
	if out.ExitCode != 0 {
		return nil, misbehaves("did not list its tools: %s", plugin.Ended(out.ExitCode, "", out.Stderr))
	}
	tools, err := plugin.ParseList(out.Stdout)
	if err != nil {
		return nil, misbehaves("cannot be used: %w", err)
	}
	for _, t := range tools {
		if _, err := CompileSchema(t.InputSchema); err != nil {
			return nil, misbehaves("cannot be used: the schema of %s %w", t.Name, err)
		}
	}
	return tools, nil
}

// maxStderr is how much a module may write to standard error beside its answer, in
// bytes.
const maxStderr = 64 << 10

func misbehaves(format string, args ...any) error {
	return tool.Errorf(tool.InvalidParams, "the module "+format, args...).
		WithHint("docs/tools.md says what a tool answers to the actions list and run.")
}

// Call runs one tool of the module of the hash. What the tool says, its failures
// too, is a result; an answer that is none is a result that says so. Errors are
// those of RunModule and Blob.
func (s *Store) Call(ctx context.Context, r backends.ModuleRunner, sum string, c tool.Request) (tool.Result, error) {
	file, err := s.Blob(sum)
	if err != nil {
		return tool.Result{}, err
	}
	stdin, err := plugin.RunRequest(c.Name, c.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	most := int64(plugin.MaxAnswer)
	if c.MaxOutputBytes > 0 {
		most = min(most, c.MaxOutputBytes)
	}
	out, err := r.RunModule(ctx, backends.ModuleRequest{
		ID: c.ID, Path: file, SHA256: sum, Stdin: stdin, Mode: c.Mode, Timeout: c.Timeout, MaxOutputBytes: most,
	})
	if err != nil {
		return tool.Result{}, named(c.Name, file, sum, err)
	}
	result := answer(c.Name, out)
	result.FuelRemaining = &out.FuelRemaining
	return result, nil
}

// named is an error of a module with another name in the place of its file's, which
// is a hash.
func named(name, file, sum string, err error) error {
	var e *tool.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, sum) {
		return err
	}
	told := *e
	told.Message, told.Err = strings.NewReplacer(file, name, sum, name).Replace(e.Message), err
	return &told
}

// answer is the result that a run of the tool of the name came to.
func answer(name string, out backends.ModuleResult) tool.Result {
	result, err := plugin.ParseAnswer(out.Stdout)
	switch {
	case err == nil && (out.ExitCode == 0 || result.IsError):
		return result
	case out.ExitCode != 0:
		return tool.Failed(name + " failed: " + plugin.Ended(out.ExitCode, "", out.Stderr))
	}
	return tool.Failed(name + " cannot be understood: " + err.Error())
}
