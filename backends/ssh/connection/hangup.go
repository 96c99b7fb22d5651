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
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A server that is asked by too many at once (MaxStartups) hangs up on some of them
// before it says what it is. Nothing was asked of it by then, so that it is tried
// again, a few times, whoever connects.

// saysStartups is what OpenSSH's server says, if anything, to whom it turns away so, and
// saysFull also what it says to whom it bars for a while; saysHungUp is its client's line
// about that, and saysClosed those that may stand beside it, of what is between the two as
// well.
const (
	saysStartups = `Exceeded MaxStartups`
	saysFull     = saysStartups + `|Not allowed at this time`
	saysHungUp   = `^(?:(?:kex|ssh)_exchange_identification: (?:read: )?Connection (?:closed|reset) by |banner exchange: Connection to .*: Broken pipe$)`
	saysClosed   = `Connection (?:closed|reset) by |Broken pipe`
)

// hangUp is a server that hung up before it proved who it is.
type hangUp struct {
	err error
	// said is what it said instead of what it is: quoted when it is shown.
	said string
	// proxied says that a ProxyCommand of the user's led there: each attempt runs that,
	// which may ask him, or count against him elsewhere.
	proxied bool
}

// Error says what happened.
func (h *hangUp) Error() string {
	switch {
	case h.said != "":
		return fmt.Sprintf("it hung up with the words %q", h.said)
	case h.proxied:
		return "its ProxyCommand ended, or it hung up, before that proved who it is: " + h.err.Error()
	}
	return "it hung up before it proved who it is: " + h.err.Error()
}

// Unwrap returns the cause.
func (h *hangUp) Unwrap() error { return h.err }

// passes reports whether that may be over soon. One that has said something else is
// no ssh server, and a ProxyCommand is not run again on a mere guess.
func (h *hangUp) passes() bool {
	if h.proxied {
		return regexp.MustCompile(saysStartups).MatchString(h.said)
	}
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

// hint is what to do about it, and command what a person connects with.
func (h *hangUp) hint(command string) string {
	if h.proxied && h.said == "" {
		return fmt.Sprintf("see with %s whether the ProxyCommand works, which may say nothing of its own; else %s", command, fullHint)
	}
	return fmt.Sprintf("%s; see whether %s connects", fullHint, command)
}

// fullHint is what to do about a server that hangs up.
const fullHint = "the log of its ssh server says why: often MaxStartups, when many connect at once, or PerSourcePenalties; else a firewall"

// reach connects to one host, as hop does, and anew while the host hangs up on whoever
// comes: for as long as one attempt is given.
func (p *Pool) reach(ctx context.Context, h, before *hop, clients []*ssh.Client, abort func() error, progress backends.Progress) (*ssh.Client, *heardConn, error) {
	var client *ssh.Client
	var conn *heardConn
	err := p.insist(ctx, h.String(), h.Settings.timeout(), progress, func() (err error) {
		client, conn, err = p.hop(ctx, h, before, clients, abort)
		return err
	})
	return client, conn, err
}

// errSilent is in the chain of the error of an attempt that no answer came to.
var errSilent = errors.New("it did not answer")

// insist calls connect until it fails with something else than a hang-up that may be
// over soon, or the pool's pauses are used up, or ctx is over. No attempt begins later
// than within; how long one may take is for connect to say.
func (p *Pool) insist(ctx context.Context, whom string, within time.Duration, progress backends.Progress, connect func() error) error {
	start := time.Now()
	var full *tool.Error // the hang-up before
	for attempt := 1; ; attempt++ {
		err := connect()
		var end *hangUp
		switch {
		case err == nil:
			return nil
		case full != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, errSilent):
			return full // it says more than an attempt that had no time
		case !errors.As(err, &end) || !end.passes() || ctx.Err() != nil:
			return err
		}
		if !errors.As(err, &full) {
			return err
		}
		full.Message += fmt.Sprintf(" (%d times within %s)", attempt, time.Since(start).Round(time.Millisecond))
		if attempt > len(p.pauses) {
			return full
		}
		pause := p.pauses[attempt-1]
		pause = pause*3/4 + rand.N(pause/2) // apart from those who were turned away with us
		deadline, limited := ctx.Deadline()
		if time.Since(start)+pause > within || limited && time.Until(deadline) < pause {
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
// jump that failed has its own. A ProxyCommand need not have any, so that with one, of
// which proxied tells, it may have been either.
func masterHungUp(text string, proxied bool, err error) *hangUp {
	line, beside, full := regexp.MustCompile(saysHungUp), regexp.MustCompile(saysClosed), regexp.MustCompile(saysFull)
	found := false
	for l := range strings.Lines(plainLines(text)) {
		switch l = strings.TrimSpace(l); {
		case line.MatchString(l):
			found = true
		// The server's words are in a line of the client's, into which others may have written.
		case l == "", beside.MatchString(l), full.MatchString(l):
		default:
			return nil
		}
	}
	if !found {
		return nil
	}
	return &hangUp{err: err, said: full.FindString(text), proxied: proxied}
}

// proxyCommand reports whether a ProxyCommand of the user's leads to a host of the route.
func (r *Route) proxyCommand() bool {
	return slices.ContainsFunc(r.hops, func(h *hop) bool { return h.Settings.set("proxycommand") != "" })
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
