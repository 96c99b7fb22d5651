package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

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

// shown is JSON without what a terminal would obey, or hide: a person is to see what
// runs. It stands in texts only, which have another way to write it.
func shown(raw []byte) string {
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ') // between words
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// harmless is a text of which a terminal obeys nothing: errors quote what programs
// and machines said that are not this one's.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// askPerson asks on a terminal. Anything but yes is no.
func askPerson(ctx context.Context, in io.Reader, out io.Writer, c session.Confirmation) (session.Decision, error) {
	fmt.Fprintf(out, "%s needs a confirmation: %s\n  %s\nRun it? [y/N] ", c.Tool, c.Reason, shown(c.Arguments))
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
