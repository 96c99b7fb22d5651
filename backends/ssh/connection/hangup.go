package connection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A server that is asked by too many at once (MaxStartups) hangs up on some of them
// before it says what it is. Nothing was asked of it by then, so that it is tried
// again, for a while, whoever connects.

// saysFull is what OpenSSH's server says, if anything, to whom it turns away so;
// saysHungUp is its client's line about that, and saysClosed those that may stand beside
// it, of what is between the two as well.
const (
	saysFull   = `Exceeded MaxStartups|Not allowed at this time`
	saysHungUp = `^(?:kex|ssh)_exchange_identification: (?:read: )?Connection (?:closed|reset) by .*$`
	saysClosed = `Connection (?:closed|reset) by |Broken pipe`
)

// hangUp is a server that hung up before it proved who it is.
type hangUp struct {
	err error
	// said is what it said instead of what it is: quoted when it is shown.
	said string
}

// Error says what happened.
func (h *hangUp) Error() string {
	if h.said != "" {
		return fmt.Sprintf("it hung up with the words %q", h.said)
	}
	return "it hung up before it proved who it is: " + h.err.Error()
}

// Unwrap returns the cause.
func (h *hangUp) Unwrap() error { return h.err }

// passes reports whether that may be over soon. One that has said something else is
// no ssh server.
func (h *hangUp) passes() bool {
	return h.said == "" || regexp.MustCompile(saysFull).MatchString(h.said)
}

// hungUp tells an end of the connection from what was wrong with what came.
func hungUp(err error) bool {
	var op *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return true
	case errors.As(err, &op):
		return !op.Timeout() && (op.Op == "read" || op.Op == "write")
	}
	return false
}

// fullHint is what to do about a server that hangs up.
const fullHint = "the log of its ssh server says why: often MaxStartups, when many connect at once, or PerSourcePenalties; else a firewall"

// reach connects to one host, as hop does, and anew while the host hangs up on whoever
// comes, within the time that the host is given.
func (p *Pool) reach(ctx context.Context, h, before *hop, clients []*ssh.Client, abort func() error, progress backends.Progress) (*ssh.Client, *heardConn, error) {
	ctx, cancel := context.WithTimeout(ctx, h.Settings.timeout())
	defer cancel()
	var client *ssh.Client
	var conn *heardConn
	err := p.insist(ctx, h.String(), progress, func() (err error) {
		client, conn, err = p.hop(ctx, h, before, clients, abort)
		return err
	})
	return client, conn, err
}

// insist calls connect until it fails with something else than a hang-up that may be
// over soon, or the pool's patience with those, or ctx, is over.
func (p *Pool) insist(ctx context.Context, whom string, progress backends.Progress, connect func() error) error {
	start := time.Now()
	var full *tool.Error // the hang-up before
	for attempt := 1; ; attempt++ {
		err := connect()
		var end *hangUp
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &end) && full != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return full // what cut the last attempt short says less
		case !errors.As(err, &end) || !end.passes() || ctx.Err() != nil:
			return err
		}
		if !errors.As(err, &full) {
			return err
		}
		full.Message += fmt.Sprintf(" (%d times within %s)", attempt, time.Since(start).Round(time.Millisecond))
		pause := min(maxTurnedAway, firstTurnedAway<<min(attempt-1, 16))
		pause = pause/2 + rand.N(pause/2) // apart from those who were turned away with us
		deadline, limited := ctx.Deadline()
		if time.Since(start)+pause > p.patience || limited && time.Until(deadline) < pause {
			return full
		}
		p.log.Debug("hung up on: trying again", "whom", whom, "pause", pause, "error", err)
		progress.Report(whom + " hung up at once: trying again")
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return full
		}
	}
}

// masterHungUp is the hang-up that OpenSSH's words are about, and nothing else is: a
// jump or a ProxyCommand that failed has its own.
func masterHungUp(text string, err error) *hangUp {
	line, beside := regexp.MustCompile(saysHungUp), regexp.MustCompile(saysClosed)
	found := false
	for l := range strings.Lines(plainLines(text)) {
		switch l = strings.TrimSpace(l); {
		case line.MatchString(l):
			found = true
		case l == "", beside.MatchString(l):
		default:
			return nil
		}
	}
	if !found {
		return nil
	}
	return &hangUp{err: err, said: regexp.MustCompile(saysFull).FindString(text)}
}

// greeting is what a far end says before it says what it is.
type greeting struct {
	// done is set with the line that says what it is, or when it is too long to be one.
	done bool
	said []byte
}

// hear takes what was read.
func (g *greeting) hear(p []byte) {
	if g.done || len(p) == 0 {
		return
	}
	g.said = append(g.said, p[:min(len(p), maxGreeting-len(g.said))]...)
	g.done = len(g.said) == maxGreeting || bytes.HasPrefix(g.said, []byte("SSH-")) || bytes.Contains(g.said, []byte("\nSSH-"))
}
