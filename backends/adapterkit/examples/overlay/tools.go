package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/tool"
)

// execute runs one tool. The others of the protocol are refused like any name that
// is none.
func (o *overlay) execute(_ context.Context, c adapterkit.Call) (tool.Result, error) {
	var a struct {
		Path       string `json:"path"`
		Content    string `json:"content"`
		CreateOnly bool   `json:"create_only"`
		OldText    string `json:"old_text"`
		NewText    string `json:"new_text"`
		ReplaceAll bool   `json:"replace_all"`
		Offset     int    `json:"offset"`
		Limit      int    `json:"limit"`
	}
	if err := json.Unmarshal(c.Arguments, &a); err != nil {
		return tool.Result{}, tool.Errorf(tool.InvalidParams, "%s: %w", c.Name, err)
	}
	name, err := o.name(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	writes := c.Name == "write_file" || c.Name == "edit_file"
	if writes && c.Mode == tool.ReadOnly {
		return tool.Result{}, tool.Errorf(tool.Denied, "%s writes, and this call may only read", c.Name)
	}
	switch c.Name {
	case "read_file":
		return o.readFile(name, a.Offset, a.Limit)
	case "write_file":
		return o.replace(name, func(old []byte, exists bool) ([]byte, string) {
			if exists && a.CreateOnly {
				return nil, a.Path + " exists already"
			}
			return []byte(a.Content), ""
		})
	case "edit_file":
		return o.replace(name, func(old []byte, exists bool) ([]byte, string) {
			n := strings.Count(string(old), a.OldText)
			switch {
			case !exists:
				return nil, "there is no file " + a.Path
			case a.OldText == "" || n == 0:
				return nil, "old_text is not in " + a.Path
			case n > 1 && !a.ReplaceAll:
				return nil, "old_text is in " + a.Path + " more than once"
			}
			return []byte(strings.ReplaceAll(string(old), a.OldText, a.NewText)), ""
		})
	case "list_files":
		return o.list(name)
	case "present_artifact":
		content, ok := o.read(name)
		if !ok {
			return tool.Failed("there is no file " + a.Path), nil
		}
		return o.exports.present(path.Base(name), content), nil
	}
	return tool.Result{}, tool.Errorf(tool.ToolNotFound, "this adapter has no tool %q: its files are in memory, where no command could see them", c.Name)
}

// readFile answers lines from offset, 1 for the first, on.
func (o *overlay) readFile(name string, offset, limit int) (tool.Result, error) {
	content, ok := o.read(name)
	if !ok {
		return tool.Failed("there is no file " + name), nil
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first := min(max(offset, 1)-1, len(lines))
	last := len(lines)
	if limit > 0 {
		last = min(last, first+limit)
	}
	return result(map[string]any{
		"path": name, "content": strings.Join(lines[first:last], ""), "content_sha256": sha(content),
		"start_line": first + 1, "num_lines": last - first, "total_lines": len(lines), "truncated": last < len(lines),
	})
}

// replace changes a file to what change makes of it, or answers why it does not.
func (o *overlay) replace(name string, change func(old []byte, exists bool) (content []byte, refusal string)) (tool.Result, error) {
	old, exists, content, refusal := o.update(name, change)
	if refusal != "" {
		return tool.Failed(refusal), nil
	}
	out := map[string]any{"path": name, "written_bytes": len(content), "new_file_sha": sha(content), "diff": ""}
	if exists {
		out["old_file_sha"] = sha(old)
	}
	return result(out)
}

func (o *overlay) list(name string) (tool.Result, error) {
	entries, ok := o.entries(name)
	if !ok {
		return tool.Failed("there is no directory " + name), nil
	}
	return result(map[string]any{
		"path": name, "entries": entries, "total": len(entries), "offset": 0, "returned_count": len(entries), "has_more": false,
	})
}

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func result(v any) (tool.Result, error) {
	raw, err := json.Marshal(v)
	return tool.Result{StructuredContent: raw}, err
}
