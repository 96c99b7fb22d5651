// Package site looks after the directories of environments on a machine that is
// not theirs alone, such as one behind ssh: it makes an environment's directory
// with a record that proves whose it is, finds it, and removes exactly that. It
// also puts the worker's own program in its place. All of it is done by this
// program, at the far end, so that neither the account's shell nor what programs
// the machine has matters.
//
// An environment's directory has mode 0700 and holds
//
//	environment.json   the record, written before anything else
//	lock               held by whoever starts a worker in it or removes it
//	workspace          what the session sees
//	state              records of processes, exports
//	run                the workers' sockets, unless its path is too long
//
// Confined commands can write to the workspace only. Whoever runs unconfined
// could write a record too; all that it could bring about is the removal of the
// directory that it lies in.
package site

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

const (
	// maxRequest bounds what is read as a request, in bytes.
	maxRequest = 1 << 20
	// maxRecord bounds what is read as a record, in bytes.
	maxRecord = 64 << 10
	// lockTimeout bounds the wait for whoever starts a worker in the directory
	// or removes it.
	lockTimeout = 20 * time.Second
	// stopSlack is what a worker that was told to end gets beyond its budget.
	stopSlack = 3 * time.Second
	// stopPoll is how often a worker that was told to end is looked at.
	stopPoll = 20 * time.Millisecond
	// leaveTimeout bounds the wait of a worker that ends idle for whoever is just
	// coming.
	leaveTimeout = 30 * time.Second
)

// Serve answers one request. The mark, unless empty, is written first, as a line
// of its own. The error is one of reading and writing only: what went wrong
// otherwise is the answer.
func Serve(ctx context.Context, mark string, in io.Reader, out io.Writer) error {
	if mark != "" {
		if _, err := io.WriteString(out, mark+"\n"); err != nil {
			return fmt.Errorf("print the mark: %w", err)
		}
	}
	var reply wire.SiteReply
	var request wire.SiteRequest
	decoder := json.NewDecoder(io.LimitReader(in, maxRequest))
	err := decoder.Decode(&request)
	if err != nil {
		err = tool.Errorf(tool.InvalidParams, "the request cannot be read: %w", err)
	} else {
		reply, err = answer(ctx, request, io.MultiReader(decoder.Buffered(), in))
	}
	if err != nil {
		reply.Fail(err)
	}
	line, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("write the reply: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the reply: %w", err)
	}
	return nil
}

// answer answers a request, whose body follows it on the input after a newline.
func answer(ctx context.Context, r wire.SiteRequest, body io.Reader) (wire.SiteReply, error) {
	if r.Sum != "" {
		if err := checkSum(r.Sum); err != nil {
			return wire.SiteReply{}, err
		}
	}
	switch r.Action {
	case wire.SiteInstall:
		return wire.SiteReply{}, install(r.Name)
	case wire.SiteSweep:
		return sweep(milliseconds(r.OlderThanMS), r.DryRun)
	}
	if !filepath.IsAbs(r.Directory) {
		return wire.SiteReply{}, tool.Errorf(tool.InvalidParams, "the directory %q is not an absolute path", r.Directory)
	}
	switch r.Action {
	case wire.SiteList:
		return list(r)
	case wire.SiteProve:
		return prove(r.Directory)
	}
	if !component(r.Record.Environment) || r.Record.Store == "" {
		return wire.SiteReply{}, tool.Errorf(tool.InvalidParams, "the environment %q is not one path component, or has no store", r.Record.Environment)
	}
	switch r.Action {
	case wire.SiteCreate:
		reply, err := create(ctx, r)
		if err == nil && r.OlderThanMS > 0 {
			// Nobody has to look after workers that nobody needs; what cannot be
			// removed now is found by the next sweep.
			_, _ = sweep(milliseconds(r.OlderThanMS), false)
		}
		return reply, err
	case wire.SiteFill:
		return wire.SiteReply{}, fill(r, body)
	case wire.SiteFind:
		return find(r)
	case wire.SiteRemove:
		return wire.SiteReply{}, remove(ctx, r)
	default:
		return wire.SiteReply{}, tool.Errorf(tool.Unsupported, "this program knows no action %q", r.Action).
			WithHint("use a service and a worker of the same release")
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func component(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && filepath.Base(s) == s
}
