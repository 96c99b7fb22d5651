package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// audit writes down what goes through a Delegated.
type audit struct {
	*adapterkit.Delegated
	log journal
}

// entry is one line of the log. It holds no variables, which are secret, and no
// contents: of a call's arguments only the first bytes, and only of commands.
type entry struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"` // begin, end
	Session string    `json:"session"`
	Method  string    `json:"method"`
	Root    string    `json:"root,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Actor   string    `json:"actor,omitempty"`
	Mode    tool.Mode `json:"mode,omitempty"`
	Command string    `json:"command,omitempty"`
	Millis  int64     `json:"ms,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Initialize logs the session.
func (a *audit) Initialize(ctx context.Context, s *adapterkit.Session, in wire.Initialize) (wire.Initialized, error) {
	var out wire.Initialized
	err := a.log.around(entry{Session: in.Session, Method: wire.MethodInitialize, Root: in.Root}, func() (err error) {
		out, err = a.Delegated.Initialize(ctx, s, in)
		return err
	})
	return out, err
}

// Handle logs a request.
func (a *audit) Handle(ctx context.Context, r *adapterkit.Request) (wire.Response, error) {
	e := entry{Session: r.Session().Binding().Session, Method: r.Method}
	switch r.Method {
	case wire.MethodExecute:
		// What cannot be understood here is refused by the worker, with better words.
		if x, arguments, err := r.Execute(); err == nil {
			e.Tool, e.Actor, e.Mode = x.Call.Name, x.Actor, x.PermissionMode
			e.Command = commandLine(arguments)
		}
	case wire.MethodProcessStart:
		var x tool.StartRequest
		if err := r.Decode(&x); err == nil {
			e.Actor, e.Mode, e.Command = x.Actor, x.PermissionMode, clip(x.Command+strings.Join(x.Argv, " "))
		}
	}
	var out wire.Response
	err := a.log.around(e, func() (err error) {
		out, err = a.Delegated.Handle(ctx, r)
		return err
	})
	return out, err
}

// commandLine is the command line among a tool's arguments.
func commandLine(arguments json.RawMessage) string {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(arguments, &a) != nil {
		return ""
	}
	return clip(a.Command)
}

// clip is the head of s.
func clip(s string) string { return tool.Clip(s, 1000) }

// journal writes entries, one a line.
type journal struct {
	mu sync.Mutex
	to io.Writer
}

// around logs what f does. What cannot be logged beforehand is not done.
func (j *journal) around(e entry, f func() error) error {
	begun := time.Now()
	e.Time, e.Event = begun, "begin"
	if err := j.write(e); err != nil {
		return tool.Errorf(tool.Denied, "the audit log cannot be written, and nothing is done without it: %w", err)
	}
	err := f()
	e.Time, e.Event, e.Millis = time.Now(), "end", time.Since(begun).Milliseconds()
	if err != nil {
		e.Error = err.Error()
	}
	if logErr := j.write(e); logErr != nil && err == nil {
		err = tool.Errorf(tool.OutcomeUnknown, "%s was done, and its end could not be logged: %w", e.Method, logErr)
	}
	return err
}

func (j *journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.to.Write(append(line, '\n'))
	return err
}
