package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// The rows of codexRows.
const (
	codexStartWork     = "start, beside codex exec-server"
	codexReadWork      = "fs/readFile of 2 KB, beside codex"
	codexLargeReadWork = "fs/readFile of 16 MiB, beside codex"
	codexProcessWork   = "/bin/true to exited, beside codex"
)

// codexProgram is the peer whose protocol is nearest to ours. Nothing here
// needs it.
const codexProgram = "codex"

// codex is one running exec-server and the ends of processes that it told of.
type codex struct {
	*client
	home  string
	exits map[string]bool
	next  int
}

// startCodex returns when the peer has answered initialize.
func startCodex(ctx context.Context) (*codex, error) {
	home, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, codexProgram, "exec-server", "--listen", "stdio")
	command.Env = environment("CODEX_HOME=" + home)
	command.Dir = home
	c := &codex{home: home, exits: map[string]bool{}}
	if c.client, err = dial(command); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	c.lines, c.notified = true, c.event
	if _, err := c.call("initialize", []byte(`{"clientName":"caisson-bench"}`)); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, c.send("", "initialized", []byte("{}"))
}

func (c *codex) event(method string, message []byte) {
	var e struct {
		Params struct {
			ProcessID string `json:"processId"`
		} `json:"params"`
	}
	if method == "process/exited" && json.Unmarshal(message, &e) == nil {
		c.exits[e.Params.ProcessID] = true
	}
}

func (c *codex) stop() error { return errors.Join(c.close(), os.RemoveAll(c.home)) }

// read returns a function that reads the file, which has at least so many bytes
// as base64.
func (c *codex) read(path string, least int) func() error {
	p := params(map[string]any{"path": "file://" + path})
	return func() error {
		message, err := c.call("fs/readFile", p)
		if err == nil && len(message) < least {
			err = fmt.Errorf("fs/readFile: %s", message)
		}
		return err
	}
}

// run starts /bin/true and waits for its end.
func (c *codex) run() error {
	c.next++
	id := fmt.Sprint("p", c.next)
	_, err := c.call("process/start", params(map[string]any{
		"processId": id, "argv": []string{"/bin/true"}, "cwd": "file://" + c.home,
		"env": map[string]string{}, "tty": false, "pipeStdin": false,
	}))
	for err == nil && !c.exits[id] {
		_, _, err = c.client.next()
	}
	return err
}

// codexRows compares with the exec-server of codex, from the same client.
func codexRows(ctx context.Context, b *bench) (err error) {
	if err := codexStart(ctx, b); err != nil {
		return err
	}
	c, err := startCodex(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	s, err := b.start(ctx, "{}")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	id, err := s.open("")
	if err != nil {
		return err
	}
	small, large := filepath.Join(s.workspace, "small.txt"), filepath.Join(s.workspace, "large.txt")
	if err := errors.Join(writeText(small, smallFile), writeText(large, largeFile)); err != nil {
		return err
	}
	readSmall := params(protocol.FileReadParams{SessionID: id, Path: "small.txt"})
	for _, w := range []struct {
		work        string
		rounds      int
		ours, other func() error
		row         func(comparison) row
	}{
		{codexReadWork, rounds * 5, func() error { _, err := s.call(protocol.MethodFileRead, readSmall); return err }, c.read(small, smallFile),
			func(c comparison) row { return c.atMost(codexProgram, 0.5) }},
		{codexLargeReadWork, rareRounds, s.readLarge(id), c.read(large, largeFile),
			func(c comparison) row { return c.faster(codexProgram, 5).rates(largeFile, c, codexProgram) }},
		{codexProcessWork, rounds, func() error { return s.run(protocol.ProcessStartParams{SessionID: id, Argv: []string{"/bin/true"}}) }, c.run,
			func(c comparison) row { return c.atMost(codexProgram, 1) }},
	} {
		if !b.wants(w.work) {
			continue
		}
		c, err := versus(ctx, w.rounds, w.ours, w.other)
		if err != nil {
			return err
		}
		b.add(w.work, w.row(c))
	}
	return s.delete(id)
}

func codexStart(ctx context.Context, b *bench) error {
	if !b.wants(codexStartWork) {
		return nil
	}
	start, err := b.startTime(ctx)
	if err != nil {
		return err
	}
	other, err := medianOf(ctx, rareRounds, func() (time.Duration, error) {
		start := time.Now()
		c, err := startCodex(ctx)
		d := time.Since(start)
		if err != nil {
			return 0, err
		}
		return d, c.stop()
	})
	if err != nil {
		return err
	}
	b.add(codexStartWork, atMost(start, codexProgram, other, 1))
	return nil
}
