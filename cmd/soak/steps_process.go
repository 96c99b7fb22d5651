//go:build unix

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

const (
	// remembered is how many processes an agent looks after at a time.
	remembered = 40
	// longest is how far a script counts.
	longest = 400
)

// script draws one of the processes.
func (w *world) script(r *rand.Rand) script {
	code := r.IntN(100)
	switch r.IntN(5) {
	case 0:
		return script{command: fmt.Sprintf("echo quick; exit %d", code), output: "quick\n", code: code}
	case 1:
		n := 10 + r.IntN(longest-10)
		return script{
			command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); [ $((i %% 20)) = 0 ] && sleep 0.05; done; exit %d", n, code),
			output:  counting(n), code: code,
		}
	case 2:
		return script{command: "exec cat", echoes: true}
	case 3:
		return script{command: "echo up; exec sleep " + w.mark(), output: "up\n", lasts: true}
	default:
		rows, columns := uint16(10+r.IntN(90)), uint16(20+r.IntN(180))
		return script{
			command: fmt.Sprintf("stty size; exit %d", code), tty: &protocol.TTY{Rows: rows, Cols: columns},
			output: fmt.Sprintf("%d %d\r\n", rows, columns), code: code,
		}
	}
}

// begin starts a process, sometimes twice with one operation, which must be one.
func (a *agent) begin(ctx context.Context, r *rand.Rand) error {
	a.calls++
	p := &process{script: a.script(r), operation: fmt.Sprintf("%s-%d", a.name(), a.calls), began: time.Now(), stopped: nothing, closed: nothing}
	params := protocol.ProcessStartParams{SessionID: a.sessionID(), Command: p.command, TTY: p.tty, OperationID: p.operation}
	for range 1 + r.IntN(4)/3 {
		call, cancel := limited(ctx)
		result, err := a.service.ProcessStart(call, params)
		cancel()
		e, err := a.judge("process/start", p.began, err)
		if err != nil {
			return err
		}
		a.tally.outcome("starts", e)
		a.note("start %s: %q is %s %d", p.operation, p.command, result.Process.ID, e)
		switch {
		case e == unknown:
			a.unsure[p.operation] = true
		case e == done && p.id != "" && p.id != result.Process.ID:
			return fmt.Errorf("the operation %s has made two processes, %s and %s", p.operation, p.id, result.Process.ID)
		case e == done && p.id == "":
			p.id = result.Process.ID
			a.keep(p)
			if err := a.record(p, result.Process); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep looks after a process, and no longer after the oldest that has ended when
// they are too many.
func (a *agent) keep(p *process) {
	a.processes = append(a.processes, p)
	if len(a.processes) <= remembered {
		return
	}
	if i := slices.IndexFunc(a.processes, func(p *process) bool { return p.final != nil }); i >= 0 {
		a.forgotten[a.processes[i].id] = true
		a.processes = slices.Delete(a.processes, i, i+1)
	}
}

// record checks what was said of a process.
func (a *agent) record(p *process, r protocol.Process) error {
	if r.ID != p.id || r.OperationID != p.operation {
		return fmt.Errorf("process %s of operation %q is called %s and %q", p.id, p.operation, r.ID, r.OperationID)
	}
	known := p.final != nil
	if err := p.status(r, a.disturbedAt()); err != nil {
		return fmt.Errorf("process %s (%s): %w", p.id, p.command, err)
	}
	if !known && p.final != nil {
		a.tally.count("processes " + string(r.Status))
	}
	return nil
}

// any draws one of the processes that are wanted, or nil.
func (a *agent) any(r *rand.Rand, wanted func(*process) bool) *process {
	start := r.IntN(remembered)
	for i := range a.processes {
		if p := a.processes[(start+i)%len(a.processes)]; wanted(p) {
			return p
		}
	}
	return nil
}

// excused makes a refusal that concerns a process that may be lost into nothing.
func (a *agent) excused(p *process, what string, began time.Time, err error) (effect, error) {
	var refused *protocol.Error
	if errors.As(err, &refused) && !refused.Data.OutcomeUnknown && !a.disturbedAt().Before(p.began) {
		a.note("%s of %s is refused: %s", what, p.id, explain(err))
		return nothing, nil
	}
	return a.judge(fmt.Sprintf("%s of %s (%s)", what, p.id, p.command), began, err)
}

// input writes to a process that echoes, or closes its input.
func (a *agent) input(ctx context.Context, r *rand.Rand) error {
	p := a.any(r, func(p *process) bool {
		return p.echoes && p.final == nil && p.closed == nothing && p.stopped == nothing
	})
	if p == nil {
		return a.begin(ctx, r)
	}
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	if r.IntN(6) == 0 {
		result, err := a.service.ProcessCloseStdin(call, protocol.ProcessParams{SessionID: a.sessionID(), ProcessID: p.id})
		e, err := a.excused(p, "process/closeStdin", began, err)
		p.closed = e
		if err != nil || e != done {
			return err
		}
		return a.record(p, result.Process)
	}
	a.calls++
	text := fmt.Sprintf("%s says %d\n", a.name(), a.calls)
	_, err := a.service.ProcessWrite(call, protocol.ProcessWriteParams{SessionID: a.sessionID(), ProcessID: p.id, Data: text})
	e, err := a.excused(p, "process/write", began, err)
	if err != nil {
		return err
	}
	a.tally.outcome("inputs", e)
	a.note("input of %s: %q %d", p.id, text, e)
	if e != nothing {
		p.pieces = append(p.pieces, piece{text, e})
	}
	return nil
}

// output reads what a process printed.
func (a *agent) output(ctx context.Context, r *rand.Rand) error {
	p := a.any(r, func(*process) bool { return true })
	if p == nil {
		return a.begin(ctx, r)
	}
	offset := int64(0)
	if !p.echoes && p.final != nil && p.final.TotalBytes > 0 {
		offset = r.Int64N(p.final.TotalBytes)
	}
	_, err := a.readOutput(ctx, p, offset, int64(r.IntN(200)))
	return err
}

// readOutput reads and checks a page of output, and says whether it was the last.
func (a *agent) readOutput(ctx context.Context, p *process, offset, waitMs int64) (complete bool, err error) {
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	page, err := a.service.ProcessRead(call, protocol.ProcessReadParams{
		SessionID: a.sessionID(), ProcessID: p.id, Offset: &offset, WaitMs: waitMs, MaxBytes: 1 << 20, Encoding: protocol.EncodingBase64,
	})
	e, err := a.judge("process/read of "+p.id, began, err)
	if err != nil || e != done {
		return false, err
	}
	raw, err := base64.StdEncoding.DecodeString(page.Data)
	if err != nil {
		return false, err
	}
	if page.StartOffset != offset || page.EndOffset != offset+int64(len(raw)) || page.TotalBytes < page.EndOffset {
		return false, fmt.Errorf("process %s: asked for %d, got %d to %d of %d with %d bytes", p.id, offset, page.StartOffset, page.EndOffset, page.TotalBytes, len(raw))
	}
	if err := a.record(p, page.Process); err != nil {
		return false, err
	}
	if err := p.wrote(offset, string(raw), page.EOF); err != nil {
		return false, fmt.Errorf("process %s (%s), %s: %w", p.id, p.command, told(page.Process), err)
	}
	return page.EOF, nil
}

// subscribe has a process's output pushed.
func (a *agent) subscribe(ctx context.Context, r *rand.Rand) error {
	p := a.any(r, func(p *process) bool { return !p.echoes && p.final == nil && a.service.follow(p) })
	if p == nil {
		return a.begin(ctx, r)
	}
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	result, err := a.service.ProcessSubscribe(call, protocol.ProcessSubscribeParams{SessionID: a.sessionID(), ProcessID: p.id, FromOffset: new(int64)})
	e, err := a.judge("process/subscribe", began, err)
	if err != nil || e != done {
		return err
	}
	if result.Offset != 0 {
		return fmt.Errorf("the subscription to %s begins at %d", p.id, result.Offset)
	}
	a.tally.count("subscriptions")
	return a.record(p, result.Process)
}

// stop ends a process.
func (a *agent) stop(ctx context.Context, r *rand.Rand) error {
	p := a.any(r, func(p *process) bool { return p.final == nil })
	if p == nil {
		return nil
	}
	return a.end(ctx, p, r.IntN(2) == 0)
}

// end stops a process or sends it a signal, and checks what became of it.
func (a *agent) end(ctx context.Context, p *process, bySignal bool) error {
	call, cancel := limited(ctx)
	defer cancel()
	p.stopped = unknown
	began := time.Now()
	var result protocol.ProcessResult
	var err error
	if bySignal {
		result, err = a.service.ProcessSignal(call, protocol.ProcessSignalParams{SessionID: a.sessionID(), ProcessID: p.id, Signal: "SIGTERM"})
		var refused *protocol.Error
		if errors.As(err, &refused) && refused.Kind() == "" {
			// It had ended.
			result, err = a.service.ProcessGet(call, protocol.ProcessParams{SessionID: a.sessionID(), ProcessID: p.id})
		}
	} else {
		result, err = a.service.ProcessStop(call, protocol.ProcessParams{SessionID: a.sessionID(), ProcessID: p.id})
	}
	e, err := a.excused(p, "the end", began, err)
	if err != nil || e != done {
		return err
	}
	a.note("end of %s by signal %t: %s", p.id, bySignal, told(result.Process))
	if err := a.record(p, result.Process); err != nil {
		return err
	}
	if !bySignal && p.final == nil {
		return fmt.Errorf("process %s was stopped and is %s", p.id, told(result.Process))
	}
	return nil
}

// list checks the records of all processes.
func (a *agent) list(ctx context.Context, _ *rand.Rand) error {
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	result, err := a.service.ProcessList(call, protocol.SessionParams{SessionID: a.sessionID()})
	e, err := a.judge("process/list", began, err)
	if err != nil || e != done {
		return err
	}
	records, operations := map[string]protocol.Process{}, map[string]string{}
	for _, r := range result.Processes {
		if other := operations[r.OperationID]; other != "" && r.OperationID != "" {
			return fmt.Errorf("the operation %s has two processes, %s and %s", r.OperationID, other, r.ID)
		}
		records[r.ID], operations[r.OperationID] = r, r.ID
	}
	for _, p := range a.processes {
		r, is := records[p.id]
		if !is {
			return fmt.Errorf("the process %s (%s) is not in the list of %d", p.id, p.command, len(records))
		}
		if err := a.record(p, r); err != nil {
			return err
		}
		delete(records, p.id)
	}
	for id, r := range records {
		// A command that lasted longer than its time was adopted as its call's.
		if !a.forgotten[id] && !a.unsure[r.OperationID] && r.OperationID != "" {
			return fmt.Errorf("nobody started the process %s (%s) of operation %s", id, r.Command, r.OperationID)
		}
	}
	return nil
}

// adopt runs a command longer than it may take, which makes it a process.
func (a *agent) adopt(ctx context.Context, _ *rand.Rand) error {
	p := &process{script: script{command: "echo up; exec sleep " + a.mark(), output: "up\n", lasts: true}, began: time.Now(), stopped: nothing, closed: nothing}
	result, e, err := a.tool(ctx, "bash", map[string]any{"command": p.command, "timeout_seconds": 1})
	if err != nil || e != done {
		return err
	}
	var got struct {
		TimedOut bool   `json:"timed_out"`
		Promoted string `json:"promoted_process_id"`
	}
	if err := json.Unmarshal(result.StructuredContent, &got); err != nil {
		return err
	}
	if !got.TimedOut || got.Promoted == "" {
		return fmt.Errorf("the command was not adopted: %s", result.StructuredContent)
	}
	a.note("adopted %s", got.Promoted)
	p.id = got.Promoted
	call, cancel := limited(ctx)
	defer cancel()
	r, err := a.service.ProcessGet(call, protocol.ProcessParams{SessionID: a.sessionID(), ProcessID: p.id})
	if e, err = a.judge("process/get of what was adopted", p.began, err); err != nil {
		return err
	}
	if e == done {
		p.operation = r.Process.OperationID
		if err := a.record(p, r.Process); err != nil {
			return err
		}
		a.keep(p)
	} else {
		a.forgotten[p.id] = true
	}
	return nil
}

// cancel begins a command and cancels it soon after.
func (a *agent) cancel(ctx context.Context, r *rand.Rand) error {
	a.calls++
	line := fmt.Sprintf("%s-%d-%d", a.name(), a.generation, a.calls)
	p := protocol.ToolCallParams{SessionID: a.sessionID(), Name: "bash", CallID: line, Arguments: protocol.RawObject(
		fmt.Sprintf(`{"command": "mkdir -p %s && echo %s >> %s; exec sleep %s"}`, a.subdir, line, a.bookName(), a.mark()))}
	s := a.service
	events := s.watch(line)
	call, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(60))*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.ToolCall(call, p)
	a.book.appended(line, unknown)
	a.note("cancel %s: %v", line, err)
	if err == nil {
		return errors.New("a command that sleeps for hours has ended")
	}
	var refused *protocol.Error
	if errors.As(err, &refused) {
		_, err = a.judge("bash", began, err)
		return errors.Join(err, s.forget(line, false))
	}
	// Its end is told when it has really stopped.
	limit := time.NewTimer(callLimit)
	defer limit.Stop()
	select {
	case <-events.end:
	case <-s.ended:
		if !s.gone() {
			err = errors.New("the service ended by itself")
			return err
		}
	case <-ctx.Done():
	case <-limit.C:
		// Refused before it began, it had no events.
		s.mu.Lock()
		began := events.started > 0
		s.mu.Unlock()
		if began {
			return fmt.Errorf("the cancelled call %s does not end within %v", line, callLimit)
		}
	}
	return s.forget(line, false)
}

// timeout has a command hit the caller's limit.
func (a *agent) timeout(ctx context.Context, _ *rand.Rand) error {
	a.calls++
	line := fmt.Sprintf("%s-%d-%d", a.name(), a.generation, a.calls)
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	_, err := a.service.ToolCall(call, protocol.ToolCallParams{
		SessionID: a.sessionID(), Name: "bash", Constraints: &protocol.Constraints{Timeout: protocol.Duration(300 * time.Millisecond)},
		Arguments: protocol.RawObject(fmt.Sprintf(`{"command": "mkdir -p %s && echo %s >> %s; exec sleep %s"}`, a.subdir, line, a.bookName(), a.mark())),
	})
	a.book.appended(line, unknown)
	a.note("timeout %s: %v", line, err)
	var e *protocol.Error
	if errors.As(err, &e) && e.Kind() == protocol.KindTimeout {
		return nil
	}
	if err == nil {
		return errors.New("a command that sleeps for hours has ended")
	}
	_, err = a.judge("bash", began, err)
	return err
}
