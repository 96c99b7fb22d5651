package tools

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
)

type processArgs struct {
	Action      string  `json:"action" required:""`
	ProcessID   string  `json:"process_id"`
	WaitMS      *int64  `json:"wait_ms"`
	OffsetBytes *int64  `json:"offset_bytes"`
	MaxBytes    *int64  `json:"max_bytes"`
	Input       *string `json:"input"`
}

// The actions of the tool process.
const (
	actionRead   = "read"
	actionWrite  = "write"
	actionStop   = "stop"
	actionList   = "list"
	actionUpdate = "update"
)

type processResult struct {
	Process tool.Process `json:"process"`
}

type processList struct {
	Processes []tool.Process `json:"processes"`
}

type processOutput struct {
	Process     tool.Process `json:"process"`
	Output      string       `json:"output"`
	StartOffset int64        `json:"start_offset"`
	EndOffset   int64        `json:"end_offset"`
	TotalBytes  int64        `json:"total_bytes"`
	// Truncated says that output before start_offset is no longer kept.
	Truncated bool `json:"truncated"`
	TimedOut  bool `json:"timed_out"`
	EOF       bool `json:"eof"`
	Lossy     bool `json:"lossy,omitzero"`
}

func (s *Set) process(ctx context.Context, c *call, a processArgs) (tool.Result, error) {
	if err := errors.Join(
		between("wait_ms", a.WaitMS, 0, maxWait),
		between("offset_bytes", a.OffsetBytes, 0, maxOffset),
		between("max_bytes", a.MaxBytes, 1, maxOffset)); err != nil {
		return tool.Result{}, err
	}
	actions := []string{actionRead, actionWrite, actionStop, actionList, actionUpdate}
	switch {
	case !slices.Contains(actions, a.Action):
		return tool.Result{}, refuse("action is %q; it must be one of %s", a.Action, strings.Join(actions, ", "))
	case a.Action != actionList && a.ProcessID == "":
		return tool.Result{}, refuse("process_id is missing; the action list tells the ids")
	}
	var p tool.Process
	var err error
	switch a.Action {
	case actionList:
		list, err := s.o.Commands.List(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		return result(processList{append([]tool.Process{}, list...)})
	case actionRead:
		return s.readProcess(ctx, c, a)
	case actionWrite:
		if a.Input == nil {
			return tool.Result{}, refuse("input is missing")
		}
		if err := s.maySteer(ctx, c, a.ProcessID); err != nil {
			return tool.Result{}, err
		}
		p, err = s.o.Commands.Write(ctx, a.ProcessID, []byte(*a.Input))
	case actionStop:
		if err := s.maySteer(ctx, c, a.ProcessID); err != nil {
			return tool.Result{}, err
		}
		p, err = s.o.Commands.Stop(ctx, a.ProcessID)
	case actionUpdate:
		var r tool.ReadResult
		r, err = s.more(ctx, a)
		p = r.Process
	}
	if err != nil {
		return tool.Result{}, err
	}
	return result(processResult{p})
}

// maySteer keeps a read-only caller from steering what it did not start itself,
// and what has wider rights than it.
func (s *Set) maySteer(ctx context.Context, c *call, id string) error {
	if c.mode != tool.ReadOnly {
		return nil
	}
	p, err := s.o.Commands.Get(ctx, id)
	if err != nil || p.SandboxMode == tool.ReadOnly && c.owns(p) {
		return err
	}
	return tool.Errorf(tool.Denied, "the permission mode read_only allows steering only what the same actor has started in it").
		WithHint("%s", c.wider())
}

// owns reports whether the caller has started the process.
func (c *call) owns(p tool.Process) bool {
	owner := p.Owner()
	if owner.Kind == tool.ActorMain {
		return c.Actor.Kind == tool.ActorMain || c.Actor.Kind == ""
	}
	return owner == c.Actor
}

// sideChat is the caller's kind where that is a side chat.
func (c *call) sideChat() tool.ActorKind {
	if c.Actor.Kind == tool.ActorSideChat {
		return tool.ActorSideChat
	}
	return ""
}

func (s *Set) readProcess(ctx context.Context, c *call, a processArgs) (tool.Result, error) {
	limit := s.limit(c, maxProcessBytes)
	if a.MaxBytes != nil {
		limit = int(min(int64(limit), max(*a.MaxBytes, utf8.UTFMax))) // less may hold no character at all
	}
	if a.MaxBytes == nil && a.OffsetBytes == nil {
		limit = min(limit, defaultTail)
	}
	var waited tool.ReadResult
	if a.OffsetBytes == nil {
		// The tail is there at once: what is waited for is more than there is.
		var err error
		if waited, err = s.more(ctx, a); err != nil {
			return tool.Result{}, err
		}
	}
	r, err := s.page(ctx, a, limit)
	if err != nil {
		return tool.Result{}, err
	}
	out, start := r.Output, r.StartOffset
	if a.OffsetBytes == nil || r.Truncated {
		// It began at any byte: the rest of a character there is left out.
		for n := 0; n < utf8.UTFMax-1 && start > 0 && len(out) > 0 && !utf8.RuneStart(out[0]); n++ {
			out, start = out[1:], start+1
		}
	}
	complete := atEnd(r)
	// A character that the page cuts begins the next one, unless no more comes.
	if !complete {
		out = out[:whole(out)]
	}
	res := processOutput{
		Process: r.Process, StartOffset: start, EndOffset: start + int64(len(out)), TotalBytes: r.TotalBytes,
		Truncated: r.Truncated, TimedOut: r.TimedOut || waited.TimedOut, EOF: complete,
	}
	res.Output, res.Lossy = text(out)
	return result(res)
}

// page reads at most limit bytes. Where there is no more than the beginning of a
// character, it waits for the rest of it as long as it may.
func (s *Set) page(ctx context.Context, a processArgs, limit int) (tool.ReadResult, error) {
	wait := time.Duration(or(a.WaitMS, 0)) * time.Millisecond
	deadline := time.Now().Add(wait)
	for {
		r, err := s.o.Commands.Read(ctx, a.ProcessID, tool.ReadOptions{MaxBytes: limit, OffsetBytes: a.OffsetBytes, Wait: wait})
		wait = time.Until(deadline)
		if err != nil || a.OffsetBytes == nil || wait <= 0 || !unfinished(r) {
			return r, err
		}
		rest, err := s.o.Commands.Read(ctx, a.ProcessID, tool.ReadOptions{MaxBytes: 1, OffsetBytes: &r.EndOffset, Wait: wait})
		if err != nil || rest.TimedOut {
			r.TimedOut = true
			return r, err
		}
	}
}

// atEnd reports whether no output follows what was read.
func atEnd(r tool.ReadResult) bool { return r.Process.OutputClosed && r.EndOffset == r.TotalBytes }

// unfinished reports whether all that was read is the beginning of a character whose
// rest may come.
func unfinished(r tool.ReadResult) bool {
	return len(r.Output) > 0 && whole(r.Output) == 0 && !atEnd(r)
}

// more waits until the process has written more than now or ended, for at most
// wait_ms. Of the answer, the record and whether it timed out count.
func (s *Set) more(ctx context.Context, a processArgs) (tool.ReadResult, error) {
	p, err := s.o.Commands.Get(ctx, a.ProcessID)
	if err != nil || or(a.WaitMS, 0) == 0 || p.Status.Terminal() {
		return tool.ReadResult{Process: p}, err
	}
	return s.o.Commands.Read(ctx, a.ProcessID, tool.ReadOptions{
		MaxBytes: 1, OffsetBytes: &p.TotalBytes, Wait: time.Duration(*a.WaitMS) * time.Millisecond,
	})
}
