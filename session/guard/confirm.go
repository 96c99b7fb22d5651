package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
)

// questions are what a session's person is asked and has answered.
type questions struct {
	mu sync.Mutex
	// remembered answers, and their keys from the oldest on.
	remembered map[key]bool
	order      []key
	waiting    map[key]chan struct{} // closed when the question is over
}

// key is what an answer is remembered for: the same tool, kind of actor,
// permission mode, directory and arguments, to the byte but for white space
// between JSON's words, and the same rules that asked. A call that differs in
// anything is asked about anew: an answer was given to what was shown.
type key [sha256.Size]byte

func (q *questions) init() {
	q.remembered, q.waiting = map[key]bool{}, map[key]chan struct{}{}
}

func keyOf(c Call, verdicts []verdict) key {
	var compact bytes.Buffer
	if err := json.Compact(&compact, c.Arguments); err != nil {
		compact.Reset()
		compact.Write(c.Arguments)
	}
	var rules []string
	for _, v := range verdicts {
		rules = append(rules, v.place())
	}
	raw, err := json.Marshal([]any{c.Tool, c.Actor, c.Mode, c.Dir, compact.String(), rules})
	if err != nil { // texts have a JSON form
		return key{}
	}
	return sha256.Sum256(raw)
}

// asks says what the arguments do not show of what a call asks for, "" for nothing.
func (c Call) asks() (text string) {
	if c.Mode != "" {
		text += fmt.Sprintf("; it asks for the permission mode %s", c.Mode)
	}
	if c.Actor != "" && c.Actor != tool.ActorMain {
		text += fmt.Sprintf("; it comes from a %s", strings.ReplaceAll(string(c.Actor), "_", " "))
	}
	return text
}

// confirm asks a person about the call, unless the answer is known.
func (g *Guard) confirm(ctx context.Context, c Call, verdicts []verdict, ask Ask) error {
	v := verdicts[0]
	if ask == nil {
		return v.unconfirmed(c, "and this client has nobody to ask (it has not announced guardConfirm)")
	}
	k := keyOf(c, verdicts)
	over, known, err := g.asking.begin(ctx, k)
	switch {
	case errors.Is(err, errQuestions):
		e := tool.Errorf(tool.Overloaded, "%s needs a confirmation, and %d questions of this session wait for an answer", c.Tool, maxQuestions).
			WithHint("Wait until a person has answered, then make the call again.")
		e.Retryable = true
		return e
	case err != nil:
		return tool.Errorf(tool.EndKind(ctx), "%s was cancelled while it waited for a confirmation: %w", c.Tool, err)
	case known != nil && *known:
		return nil
	case known != nil:
		return v.unconfirmed(c, "and a person has refused it for this session")
	}
	defer over()
	reason := ""
	for i, v := range verdicts {
		if i > 0 {
			reason += "; "
		}
		reason += v.because()
	}
	reason += c.asks()
	limited, cancel := context.WithTimeoutCause(ctx, g.timeout, errNoAnswer)
	defer cancel()
	shown := c
	shown.Arguments = bounded(c.Arguments)
	answer, err := ask(limited, Question{Call: shown, Reason: reason})
	switch {
	case ctx.Err() != nil:
		return tool.Errorf(tool.EndKind(ctx), "%s was cancelled while it waited for a confirmation: %w", c.Tool, context.Cause(ctx))
	case err != nil && errors.Is(context.Cause(limited), errNoAnswer):
		return v.unconfirmed(c, "and nobody answered within %v", g.timeout)
	case err != nil:
		return v.unconfirmed(c, "and the person could not be asked: %v", err)
	}
	if answer.Remember {
		g.asking.remember(k, answer.Allow)
	}
	if !answer.Allow {
		return v.unconfirmed(c, "and a person refused it")
	}
	return nil
}

var (
	errNoAnswer  = errors.New("nobody answered in time")
	errQuestions = errors.New("too many questions wait")
)

// begin returns the answer that is remembered, or the end of a question that the
// caller is to put. Whoever asks the same waits for the answer of the first: it
// may be remembered.
func (q *questions) begin(ctx context.Context, k key) (over func(), known *bool, err error) {
	for {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		q.mu.Lock()
		if allow, ok := q.remembered[k]; ok {
			q.mu.Unlock()
			return nil, &allow, nil
		}
		first := q.waiting[k]
		if first == nil {
			defer q.mu.Unlock()
			if len(q.waiting) >= maxQuestions {
				return nil, nil, errQuestions
			}
			mine := make(chan struct{})
			q.waiting[k] = mine
			return func() {
				q.mu.Lock()
				defer q.mu.Unlock()
				delete(q.waiting, k)
				close(mine)
			}, nil, nil
		}
		q.mu.Unlock()
		select {
		case <-first:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

func (q *questions) remember(k key, allow bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.remembered[k]; !ok {
		if len(q.order) == maxRemembered {
			delete(q.remembered, q.order[0])
			q.order = q.order[1:]
		}
		q.order = append(q.order, k)
	}
	q.remembered[k] = allow
}
