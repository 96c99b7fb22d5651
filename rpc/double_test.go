package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// double is a backend of kind local that keeps everything in memory: a double
// of an environment, so that the tests of this room can decide when things
// happen. The sessions above it are real.
type double struct {
	mu sync.Mutex
	// files is the workspace of every session, by path.
	files map[string][]byte
	// blocked is closed to release calls of block and stubborn; entered counts
	// them, and signals each.
	blocked chan struct{}
	entered chan string
	envs    map[string]*doubleEnv
	closed  atomic.Int32
}

func newDouble() *double {
	return &double{
		files:   map[string][]byte{"/w/a.txt": []byte("hello\n")},
		blocked: make(chan struct{}),
		entered: make(chan string, 10_000),
		envs:    map[string]*doubleEnv{},
	}
}

func (d *double) Kind() string { return profile.Local }

func (d *double) Close() error {
	d.closed.Add(1)
	return nil
}

func (d *double) Check(context.Context, profile.Profile) backends.Health {
	return backends.Health{OK: true, Checks: []backends.Check{{Name: "double", OK: true, Detail: "in memory"}}, Duration: time.Millisecond}
}

func (d *double) Open(_ context.Context, b backends.Binding, p backends.Progress) (backends.Environment, error) {
	p.Report("making a double")
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.envs[b.Environment]
	if e == nil {
		e = &doubleEnv{double: d, binding: b, processes: map[string]*doubleProcess{}}
		d.envs[b.Environment] = e
	}
	return e, nil
}

func (d *double) Remove(context.Context, backends.Binding) error { return nil }

func (d *double) Prune(context.Context, backends.PruneOptions) ([]backends.Resource, error) {
	return []backends.Resource{{Backend: profile.Local, Kind: "directory", ID: "/left", Reason: "its owner is gone"}}, nil
}

// doubleEnv is one environment.
type doubleEnv struct {
	*double
	binding backends.Binding

	mu        sync.Mutex
	processes map[string]*doubleProcess
	order     []string
	subs      []*doubleSub
}

func (e *doubleEnv) Info() backends.Info {
	return backends.Info{Backend: profile.Local, Environment: e.binding.Environment, Root: "/w"}
}

func (e *doubleEnv) Tools(context.Context) ([]tool.Description, error) {
	return []tool.Description{{
		Name: "echo", Group: tool.GroupFile, Description: "Returns its arguments.",
		InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: tool.Annotations{ReadOnly: true},
	}}, nil
}

func (e *doubleEnv) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	switch r.Name {
	case "echo":
		return tool.Result{StructuredContent: r.Arguments, Content: []tool.Part{{Type: tool.PartText, Text: string(r.Arguments)}}}, nil
	case "big":
		return tool.Result{
			Content:           []tool.Part{{Type: tool.PartText, Text: "big"}},
			StructuredContent: json.RawMessage(`{"data":"` + strings.Repeat("x", 2<<20) + `"}`),
		}, nil
	case "parts":
		return tool.Result{IsError: true, Content: []tool.Part{
			{Type: tool.PartText, Text: "not UTF-8: \xff"},
			{Type: tool.PartImage, Data: "iVBO", MIMEType: "image/png"},
			{Type: tool.PartFile, Data: "aGk=", Name: "hi.txt", MIMEType: "text/plain"},
			{Type: tool.PartFile, Name: "link.bin"},
		}}, nil
	case "fail":
		return tool.Result{}, tool.Errorf(tool.PathOutsideRoot, "../x is outside of /w").WithHint("stay inside").WithPath("../x")
	case "panic":
		panic("on purpose")
	case "block": // until it is released or cancelled
		e.entered <- r.ID
		select {
		case <-e.blocked:
			return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: "released"}}}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	case "stubborn": // until it is released, cancelled or not
		e.entered <- r.ID
		<-e.blocked
		return tool.Result{}, nil
	case "present_artifact":
		var p struct{ Path string }
		if err := json.Unmarshal(r.Arguments, &p); err != nil {
			return tool.Result{}, err
		}
		data, err := e.ReadFile(ctx, p.Path, 0, -1)
		if err != nil {
			return tool.Result{}, err
		}
		export := fmt.Sprintf(`{"execution_export":%q,"name":"a.txt","size":%d}`, p.Path, len(data))
		return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: export}}}, nil
	}
	return tool.Result{}, tool.Errorf(tool.ToolNotFound, "there is no tool %q", r.Name)
}

func (e *doubleEnv) Export(ctx context.Context, token string) (io.ReadCloser, error) {
	data, err := e.ReadFile(ctx, token, 0, -1)
	return io.NopCloser(bytes.NewReader(data)), err
}

// Detach ends the subscriptions, behind the events that they hold.
func (e *doubleEnv) Detach(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.subs {
		s.end()
	}
	e.subs = nil
	return nil
}

func (e *doubleEnv) Shutdown(context.Context) error { return nil }

// absolute is a path as files has it.
func absolute(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return strings.TrimSuffix("/w/"+path, "/")
}

func (e *doubleEnv) Stat(_ context.Context, path string) (backends.FileInfo, error) {
	e.double.mu.Lock()
	defer e.double.mu.Unlock()
	path = absolute(path)
	data, ok := e.files[path]
	if !ok {
		return backends.FileInfo{}, tool.Errorf(tool.InvalidParams, "there is no file %s", path).WithPath(path)
	}
	return backends.FileInfo{Name: path[strings.LastIndex(path, "/")+1:], Path: path, Type: "file", Size: int64(len(data)), Mode: "0644", ModTime: time.Unix(0, 0)}, nil
}

func (e *doubleEnv) ReadDirectory(ctx context.Context, path string) ([]backends.FileInfo, error) {
	e.double.mu.Lock()
	var names []string
	for name := range e.files {
		if strings.HasPrefix(name, absolute(path)+"/") {
			names = append(names, name)
		}
	}
	e.double.mu.Unlock()
	slices.Sort(names)
	var list []backends.FileInfo
	for _, name := range names {
		info, err := e.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

func (e *doubleEnv) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	if _, err := e.Stat(ctx, path); err != nil {
		return nil, err
	}
	e.double.mu.Lock()
	defer e.double.mu.Unlock()
	data := e.files[absolute(path)]
	data = data[min(offset, int64(len(data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return slices.Clone(data), nil
}

func (e *doubleEnv) WriteFile(ctx context.Context, path string, data []byte) (backends.FileInfo, error) {
	e.double.mu.Lock()
	e.files[absolute(path)] = slices.Clone(data)
	e.double.mu.Unlock()
	return e.Stat(ctx, path)
}
