//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/tool"
)

// arguments are those of all tools of this adapter.
type arguments struct {
	Path       string `json:"path"`
	Offset     int    `json:"offset"`
	Limit      int    `json:"limit"`
	Content    string `json:"content"`
	CreateOnly bool   `json:"create_only"`
	OldText    string `json:"old_text"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all"`

	Command         string `json:"command"`
	CWD             string `json:"cwd"`
	TimeoutSeconds  int    `json:"timeout_seconds"`
	RunInBackground bool   `json:"run_in_background"`

	Action      string `json:"action"`
	ProcessID   string `json:"process_id"`
	OffsetBytes *int64 `json:"offset_bytes"`
	WaitMS      int64  `json:"wait_ms"`
	MaxBytes    int    `json:"max_bytes"`
	Input       string `json:"input"`
}

// maxFile is the largest file that is read or presented.
const maxFile = 16 << 20

// execute runs one tool.
func (f *files) execute(ctx context.Context, c adapterkit.Call) (tool.Result, error) {
	a := arguments{TimeoutSeconds: 300, MaxBytes: 32 << 10}
	if err := json.Unmarshal(c.Arguments, &a); err != nil {
		return tool.Result{}, tool.Errorf(tool.InvalidParams, "%s: %w", c.Name, err)
	}
	switch c.Name {
	case "write_file", "edit_file":
		if c.Mode == tool.ReadOnly {
			return tool.Result{}, tool.Errorf(tool.Denied, "%s writes, and this call may only read", c.Name)
		}
	case "bash":
		if err := mustBeUnconfined(c.Mode); err != nil {
			return tool.Result{}, err
		}
		if a.TimeoutSeconds < 1 || a.TimeoutSeconds > 3600 {
			return tool.Result{}, tool.Errorf(tool.InvalidParams, "timeout_seconds is from 1 to 3600").WithPath("timeout_seconds")
		}
		return f.bash(ctx, c.Actor, a.Command, a.CWD, time.Duration(a.TimeoutSeconds)*time.Second, a.RunInBackground)
	case "process":
		return f.process(ctx, c, a)
	}
	name, err := f.name(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	switch c.Name {
	case "read_file":
		return f.read(name, a)
	case "write_file":
		return f.write(name, func([]byte) ([]byte, string) { return []byte(a.Content), "" }, a.CreateOnly)
	case "edit_file":
		return f.write(name, func(old []byte) ([]byte, string) {
			switch n := strings.Count(string(old), a.OldText); {
			case old == nil:
				return nil, "there is no file " + name
			case a.OldText == "" || n == 0:
				return nil, "old_text is not in " + name
			case n > 1 && !a.ReplaceAll:
				return nil, "old_text is in " + name + " more than once"
			}
			return []byte(strings.ReplaceAll(string(old), a.OldText, a.NewText)), ""
		}, false)
	case "list_files":
		return f.list(name)
	case "present_artifact":
		content, refusal := f.content(name)
		if refusal != "" {
			return tool.Failed(refusal), nil
		}
		return f.exports.present(path.Base(name), content)
	}
	return tool.Result{}, tool.Errorf(tool.ToolNotFound, "this adapter has no tool %q", c.Name)
}

// name is a tool's path relative to the workspace. What it leads to is for the root
// to say, which follows no link out of it.
func (f *files) name(p string) (string, error) {
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(f.dir, p)
		if err != nil {
			return "", tool.Errorf(tool.PathOutsideRoot, "%s is outside of %s", p, f.dir).WithPath(p)
		}
		p = rel
	}
	if p = filepath.Clean(p); !filepath.IsLocal(p) {
		return "", tool.Errorf(tool.PathOutsideRoot, "%s is outside of %s", p, f.dir).WithPath(p)
	}
	return p, nil
}

// content is what a regular file holds, or why it cannot be had.
func (f *files) content(name string) (content []byte, refusal string) {
	info, err := f.root.Stat(name)
	switch {
	case err != nil:
		return nil, err.Error()
	case !info.Mode().IsRegular():
		return nil, name + " is not a file"
	case info.Size() > maxFile:
		return nil, name + " is larger than 16 MiB"
	}
	if content, err = f.root.ReadFile(name); err != nil {
		return nil, err.Error()
	}
	return content, ""
}

func (f *files) read(name string, a arguments) (tool.Result, error) {
	content, refusal := f.content(name)
	if refusal != "" {
		return tool.Failed(refusal), nil
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	// Lines are counted from 1; without a limit all of them are read.
	from := min(max(a.Offset, 1)-1, len(lines))
	some := lines[from:]
	if a.Limit > 0 {
		some = some[:min(a.Limit, len(some))]
	}
	return result(map[string]any{
		"path": name, "content": text([]byte(strings.Join(some, ""))), "content_sha256": sha(content),
		"start_line": from + 1, "num_lines": len(some), "total_lines": len(lines), "truncated": from+len(some) < len(lines),
	})
}

// write replaces a file by what change makes of it.
func (f *files) write(name string, change func(old []byte) ([]byte, string), createOnly bool) (tool.Result, error) {
	old, err := f.root.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tool.Failed(err.Error()), nil
	}
	if err == nil && old == nil {
		old = []byte{}
	}
	if createOnly && err == nil {
		return tool.Failed(name + " exists already"), nil
	}
	content, refusal := change(old)
	if refusal != "" {
		return tool.Failed(refusal), nil
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return tool.Failed(err.Error()), nil
		}
	}
	if err := f.root.WriteFile(name, content, 0o644); err != nil {
		return tool.Failed(err.Error()), nil
	}
	out := map[string]any{"path": name, "written_bytes": len(content), "new_file_sha": sha(content), "diff": ""}
	if old != nil {
		out["old_file_sha"] = sha(old)
	}
	return result(out)
}

func (f *files) list(name string) (tool.Result, error) {
	dir, err := f.root.Open(name)
	if err != nil {
		return tool.Failed(err.Error()), nil
	}
	defer dir.Close()
	found, err := dir.ReadDir(-1)
	if err != nil {
		return tool.Failed(err.Error()), nil
	}
	entries := []map[string]any{}
	for _, d := range found {
		e := map[string]any{"name": d.Name(), "path": filepath.Join(name, d.Name()), "is_dir": d.IsDir()}
		if info, err := d.Info(); err == nil {
			e["size"], e["mode"], e["mtime"] = info.Size(), "0"+octal(info.Mode().Perm()), info.ModTime()
		}
		entries = append(entries, e)
	}
	return result(map[string]any{
		"path": name, "entries": entries, "total": len(entries), "offset": 0, "returned_count": len(entries), "has_more": false,
	})
}

// process is the tool of that name.
func (f *files) process(ctx context.Context, c adapterkit.Call, a arguments) (tool.Result, error) {
	var p tool.Process
	var err error
	switch a.Action {
	case "list":
		return result(map[string]any{"processes": f.registry.list()})
	case "read":
		r, err := f.registry.read(ctx, a.ProcessID, tool.ReadOptions{
			MaxBytes: a.MaxBytes, OffsetBytes: a.OffsetBytes, Wait: time.Duration(a.WaitMS) * time.Millisecond,
		})
		if err != nil {
			return tool.Result{}, err
		}
		return result(map[string]any{
			"process": r.Process, "output": text(r.Output), "start_offset": r.StartOffset, "end_offset": r.EndOffset,
			"total_bytes": r.TotalBytes, "truncated": r.Truncated, "timed_out": r.TimedOut, "eof": r.Process.Status.Terminal() && r.EndOffset == r.TotalBytes,
		})
	case "write", "stop":
		// A process was started unconfined, and so must be who controls it.
		if err := mustBeUnconfined(c.Mode); err != nil {
			return tool.Result{}, err
		}
		if a.Action == "write" {
			p, err = f.registry.write(ctx, a.ProcessID, []byte(a.Input))
		} else {
			p, err = f.registry.stop(ctx, a.ProcessID)
		}
	case "update":
		p, err = f.registry.get(a.ProcessID)
	default:
		err = tool.Errorf(tool.InvalidParams, "process: there is no action %q", a.Action).WithPath("action")
	}
	if err != nil {
		return tool.Result{}, err
	}
	return result(map[string]any{"process": p})
}

func octal(m os.FileMode) string {
	const digits = "01234567"
	return string([]byte{digits[m>>6&7], digits[m>>3&7], digits[m&7]})
}

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func result(v any) (tool.Result, error) {
	raw, err := json.Marshal(v)
	return tool.Result{StructuredContent: raw}, err
}
