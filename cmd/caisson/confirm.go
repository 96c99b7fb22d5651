package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/caisson-dev/caisson/session"
)

// confirm is how a call is asked about on the terminal; nil where there is none: then
// what needs a confirmation is denied.
func (a *app) confirm() session.Confirm {
	if !isTerminal(a.in) || !isTerminal(a.errs) {
		return nil
	}
	return func(ctx context.Context, c session.Confirmation) (session.Decision, error) {
		return askPerson(ctx, a.in, a.errs, c)
	}
}

// askPerson asks on a terminal. Anything but yes is no.
func askPerson(ctx context.Context, in io.Reader, out io.Writer, c session.Confirmation) (session.Decision, error) {
	fmt.Fprintf(out, "%s needs a confirmation: %s\n  %s\nRun it? [y/N] ", c.Tool, c.Reason, c.Arguments)
	type line struct {
		text string
		err  error
	}
	// A read of a terminal cannot be ended: when nobody answers it goes on until
	// the program ends, which it is about to.
	answer := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		answer <- line{text, err}
	}()
	select {
	case got := <-answer:
		if got.err != nil {
			return session.Decision{}, got.err
		}
		switch strings.ToLower(strings.TrimSpace(got.text)) {
		case "y", "yes":
			return session.Decision{Allow: true}, nil
		}
		return session.Decision{}, nil
	case <-ctx.Done():
		fmt.Fprintln(out)
		return session.Decision{}, context.Cause(ctx)
	}
}
