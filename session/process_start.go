package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// processStart is the name of a start in events, beside the names of tools.
const processStart = "process.start"

// maxOperationID bounds an operation's id, in bytes: it is kept on disk.
const maxOperationID = 256

// StartProcess starts a background process. It is a call like a tool's, with
// events of its own under the name "process.start". A start whose reply was
// lost is [tool.OutcomeUnknown], also when it is asked for again and the
// environment does not know it.
func (m *Manager) StartProcess(ctx context.Context, r StartProcess) (v Process, err error) {
	if err := r.check(); err != nil {
		return Process{}, err
	}
	s, err := m.use(r.SessionID)
	if err != nil {
		return Process{}, err
	}
	p, err := s.placeFor(tool.GroupProcess, processStart)
	if err != nil {
		return Process{}, err
	}
	x := Execution{Tool: processStart, CallID: r.CallID, RunID: r.RunID, NodeName: r.NodeName, Actor: r.Actor, admission: &admission{
		tool: processStart, mode: r.Mode, confirm: r.Confirm,
		arguments: made(startArguments{Command: r.Command, Argv: r.Argv, CWD: r.CWD, Env: r.Environment, TTY: r.TTY}),
	}}
	err = s.execute(ctx, p, x, func(ctx context.Context, x *Execution) error {
		mode, err := p.mode(r.Mode, r.Actor, Constraints{})
		if err != nil {
			return err
		}
		return p.use(ctx, use{}, func(env backends.Environment, _ time.Duration) error {
			record, err := s.start(ctx, env, r, mode)
			if err != nil {
				return whereabouts(ctx, env, r.CWD, err)
			}
			v = p.view(record)
			return nil
		})
	})
	return v, err
}

func (r StartProcess) check() error {
	switch {
	case r.Command == "" && len(r.Argv) == 0:
		return invalid("command", "a process needs a command or an argv")
	case r.Command != "" && len(r.Argv) > 0:
		return invalid("argv", "argv clashes with command: write one of them")
	case len(r.Argv) > 0 && r.Argv[0] == "":
		return invalid("argv", "argv must name a program")
	case r.TTY != nil && (r.TTY.Cols == 0 || r.TTY.Rows == 0):
		return invalid("tty", "a terminal has at least one column and one row")
	case len(r.CallID) > maxCallID:
		return invalid("callId", "a call's id has at most %d bytes", maxCallID)
	case len(r.OperationID) > maxOperationID:
		return invalid("operationId", "an operation's id has at most %d bytes", maxOperationID)
	}
	return checkActor(r.SessionID, r.Actor)
}

// start starts the process, or returns the one of the same operation.
func (s *live) start(ctx context.Context, env backends.Environment, r StartProcess, mode tool.Mode) (tool.Process, error) {
	request := tool.StartRequest{
		OperationID: r.OperationID, Command: r.Command, Argv: r.Argv, CWD: r.CWD, Environment: r.Environment,
		TTY: r.TTY, Actor: s.actorID(r.Actor), ActorKind: sideChat(r.Actor), PermissionMode: mode, Label: r.Label,
	}
	if r.OperationID == "" {
		// Nobody can ask for it again, so nothing needs to be remembered.
		request.OperationID = "op-" + newID()
		return env.Processes().Start(ctx, request)
	}
	release, err := s.starts.claim(ctx, r.OperationID)
	if err != nil {
		return tool.Process{}, err
	}
	defer release()
	parameters, err := fingerprint(request)
	if err != nil {
		return tool.Process{}, err
	}
	o, err := s.m.store.Operation(s.id, r.OperationID)
	switch {
	case err == nil:
		return s.startedBefore(ctx, env, o, parameters)
	case !errors.Is(err, store.ErrNotFound):
		return tool.Process{}, known(err)
	}
	o = store.Operation{ID: r.OperationID, Parameters: parameters, At: s.m.o.Now()}
	if err := s.m.store.SaveOperation(s.id, o); err != nil {
		return tool.Process{}, known(err)
	}
	p, err := env.Processes().Start(ctx, request)
	if err != nil {
		return tool.Process{}, s.notStarted(r.OperationID, err)
	}
	o.Process = p.ID
	if err := s.m.store.SaveOperation(s.id, o); err != nil {
		// The start is not undone for it: asked again, it is found by its operation.
		s.m.log.Warn("the operation of a process could not be saved", "session", s.id, "error", err)
	}
	return p, nil
}

// notStarted is the error of a start that got no process for an answer. An
// operation that may have started one stays on record, so that asking again
// never starts a second.
func (s *live) notStarted(operation string, err error) error {
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind == tool.OutcomeUnknown {
		return unknownStart(operation, err)
	}
	switch e.Kind {
	case tool.EnvironmentLost, tool.Timeout, tool.Cancelled:
		return err
	}
	if forget := s.m.store.ForgetOperation(s.id, operation); forget != nil {
		s.m.log.Warn("an operation that started nothing could not be forgotten", "session", s.id, "error", forget)
	}
	return err
}

// startedBefore finds the process of an operation that was asked for already.
func (s *live) startedBefore(ctx context.Context, env backends.Environment, o store.Operation, parameters string) (tool.Process, error) {
	if o.Parameters != parameters {
		return tool.Process{}, invalid("operationId", "the operation %q was a start with other parameters", o.ID)
	}
	if o.Process != "" {
		return env.Processes().Get(ctx, o.Process)
	}
	list, err := env.Processes().List(ctx)
	if err != nil {
		return tool.Process{}, err
	}
	for _, p := range list {
		if p.OperationID != o.ID {
			continue
		}
		o.Process = p.ID
		return p, known(s.m.store.SaveOperation(s.id, o))
	}
	return tool.Process{}, unknownStart(o.ID, nil)
}

func unknownStart(operation string, cause error) error {
	e := tool.Errorf(tool.OutcomeUnknown, "whether the operation %q started its process is not known", operation).
		WithHint("Look at process/list; a start under a new operationId is another process.")
	e.Err = cause
	return e
}

// fingerprint is a hash of what a start asks for.
func fingerprint(r tool.StartRequest) (string, error) {
	raw, err := json.Marshal(r) // maps are sorted
	if err != nil {
		return "", tool.Errorf(tool.Internal, "%w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// claims are names that somebody works on, each for itself.
type claims struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// claim waits until nobody else has the operation.
func (c *claims) claim(ctx context.Context, operation string) (release func(), err error) {
	for {
		c.mu.Lock()
		busy := c.busy[operation]
		if busy == nil {
			mine := make(chan struct{})
			c.busy[operation] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.busy, operation)
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ended(ctx, "waiting for the operation %q", operation)
		}
	}
}
