package wasm

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Call runs a file or search tool in the directory that its path is in.
func (e *environment) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	if tool.GroupOf(r.Name).Commands() {
		return tool.Result{}, errNoCommands(r.Name)
	}
	if r.Timeout <= 0 {
		r.Timeout = e.binding.Profile.Timeout
	}
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()
	p, path, err := e.placeOf(r)
	if err != nil {
		return tool.Result{}, err
	}
	if p.ReadOnly && (r.Name == "write_file" || r.Name == "edit_file") {
		return tool.Result{}, p.errReadOnly(path)
	}
	return p.tools.Call(ctx, r)
}

// placeOf finds the directory that a call works in. Where there is only one it is
// that, and the tool itself says what is wrong with a path.
func (e *environment) placeOf(r tool.Request) (*place, string, error) {
	if len(e.places) == 0 {
		return nil, "", errNoDirectory()
	}
	path := ""
	if len(e.places) > 1 || e.places[0].ReadOnly {
		path = member(r.Arguments, "path")
		if pattern := member(r.Arguments, "pattern"); r.Name == "glob" && path == "" && len(pattern) > 0 && pattern[0] == '/' {
			path = pattern
		}
	}
	if len(e.places) == 1 {
		return e.places[0], path, nil
	}
	p, err := e.at(path)
	return p, path, err
}

// member is the text of one member of an object; "" when there is none, which the
// tool will say better.
func member(object json.RawMessage, name string) string {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return ""
		}
		if key.String() != name {
			if d.SkipValue() != nil {
				return ""
			}
			continue
		}
		if value, err := d.ReadToken(); err == nil && value.Kind() == '"' {
			return value.String()
		}
		return ""
	}
	return ""
}

// in does something in the directory that a path is in, until the environment is
// let go of.
func in[T any](ctx context.Context, e *environment, path string, do func(context.Context, *place) (T, error)) (T, error) {
	var none T
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return none, err
	}
	defer done()
	p, err := e.at(path)
	if err != nil {
		return none, err
	}
	return do(ctx, p)
}

// Stat describes one entry.
func (e *environment) Stat(ctx context.Context, path string) (backends.FileInfo, error) {
	return in(ctx, e, path, func(ctx context.Context, p *place) (backends.FileInfo, error) {
		return p.tools.Stat(ctx, path)
	})
}

// ReadDirectory lists a directory.
func (e *environment) ReadDirectory(ctx context.Context, path string) ([]backends.FileInfo, error) {
	return in(ctx, e, path, func(ctx context.Context, p *place) ([]backends.FileInfo, error) {
		return p.tools.ReadDirectory(ctx, path)
	})
}

// ReadFile reads a piece of a file.
func (e *environment) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	return in(ctx, e, path, func(ctx context.Context, p *place) ([]byte, error) {
		return p.tools.ReadFile(ctx, path, offset, length)
	})
}

// WriteFile replaces a file.
func (e *environment) WriteFile(ctx context.Context, path string, data []byte) (backends.FileInfo, error) {
	return in(ctx, e, path, func(ctx context.Context, p *place) (backends.FileInfo, error) {
		if p.ReadOnly {
			return backends.FileInfo{}, p.errReadOnly(path)
		}
		return p.tools.WriteFile(ctx, path, data)
	})
}
