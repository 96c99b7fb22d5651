package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// CallRequest asks for one tool call.
type CallRequest struct {
	SessionID string
	Name      string
	// Arguments is one JSON object; empty means {}.
	Arguments json.RawMessage
	// CallID names the call in events and is unique among the session's calls
	// in flight; "" makes one.
	CallID string
	// Actor is who calls; the zero Actor is the session's main agent. A side
	// chat's mode is always read_only.
	Actor tool.Actor
	// Mode is the permission mode asked for; "" is the profile's. Above the
	// profile's ceiling it is [tool.Denied].
	Mode        tool.Mode
	Constraints Constraints
	// Confirm asks a person where the guard wants that; nil is a caller that cannot,
	// whose calls are denied then.
	Confirm Confirm
	// RunID and NodeName are passed through to the events.
	RunID    string
	NodeName string
	// Progress is told what the opening of the environment is doing, when the
	// call has to wait for it; may be nil.
	Progress backends.Progress
}

// CallResult is the answer to a tool call.
type CallResult struct {
	tool.Result
	CallID   string
	Backend  string
	Profile  string
	Duration time.Duration
}

// Execution is what the events around a call tell: exactly one started and one
// terminal event for each call, denials included. A request that is refused as
// [tool.InvalidParams] or for want of its session is no call and has none.
type Execution struct {
	SessionID string
	CallID    string
	RunID     string
	NodeName  string
	// Tool is the tool's name, or "process.start", "shell.job" or "code.run".
	Tool      string
	Profile   string
	Backend   string
	Actor     tool.Actor
	StartedAt time.Time
	// Duration is set in terminal events.
	Duration time.Duration
	// Err is why the call failed, in ExecutionFailed only. A result that is an
	// error for the model counts as completed.
	Err error

	// admission is what it is admitted by; the sink is not told.
	admission *admission
}

// told is the execution as the sink is told of it.
func (x Execution) told() Execution {
	x.admission = nil
	return x
}

const (
	// callGrace is added to a call's limit when the call stops waiting for its command
	// by itself before that: the command then goes on in the background, and the call
	// needs a moment to answer with what was written so far. Every other call ends at
	// its limit.
	callGrace = 5 * time.Second
	// commandTime is how long a command is waited for when its call does not say.
	commandTime = 300 * time.Second
	// maxCommandSeconds is the most that a call can say. Tools refuse more.
	maxCommandSeconds = 3600
	// maxCallID bounds a call's id, in bytes.
	maxCallID = 256
	// maxActorID bounds an actor's, in bytes: it is kept with its processes.
	maxActorID = 256
)

// in says which place the call runs in.
func (x *Execution) in(p *place) {
	x.Profile, x.Backend = p.saved.Profile.Name, p.saved.Profile.Backend
}

func newID() string {
	b := make([]byte, 10)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Call runs one tool in the session's environment.
func (m *Manager) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	if err := r.check(); err != nil {
		return CallResult{}, err
	}
	s, err := m.use(r.SessionID)
	if err != nil {
		return CallResult{}, err
	}
	x := Execution{
		Tool: r.Name, CallID: r.CallID, Actor: r.Actor, RunID: r.RunID, NodeName: r.NodeName,
		admission: &admission{mode: r.Mode, arguments: given(r.Arguments), confirm: r.Confirm},
	}
	var result CallResult
	t := s.registeredTool(r.Name)
	home, err := s.home(t, r.Name)
	if err != nil {
		return CallResult{}, err
	}
	err = s.execute(ctx, home, x, func(ctx context.Context, x *Execution) (err error) {
		p := home
		if t == nil {
			if p, err = s.locate(ctx, home, r); err == nil {
				err = s.move(ctx, home, p, x)
			}
		}
		result = CallResult{CallID: x.CallID, Backend: x.Backend, Profile: x.Profile}
		if err == nil {
			if t != nil {
				result.Result, err = s.callRegistered(ctx, t, r, x.CallID)
			} else {
				result.Result, err = s.callAt(ctx, p, r, x.CallID)
			}
			x.admission.output = returned(result.Result)
		}
		result.Duration = m.o.Now().Sub(x.StartedAt)
		return s.withNames(ctx, err)
	})
	return result, err
}

func (r *CallRequest) check() error {
	if r.Name == "" {
		return invalid("name", "a call needs the name of a tool")
	}
	if len(r.CallID) > maxCallID {
		return invalid("callId", "a call's id has at most %d bytes", maxCallID)
	}
	if r.Arguments = bytes.TrimSpace(r.Arguments); len(r.Arguments) == 0 {
		r.Arguments = json.RawMessage("{}")
	}
	if r.Arguments[0] != '{' {
		return invalid("arguments", "the arguments of a tool must be an object")
	}
	return checkActor(r.SessionID, r.Actor)
}

func checkActor(session string, a tool.Actor) error {
	switch a.Kind {
	case "", tool.ActorMain:
	case tool.ActorSubagent, tool.ActorSideChat:
		switch a.ID {
		case "":
			return invalid("actor.id", "an actor of kind %s needs an id", a.Kind)
		case session:
			return invalid("actor.id", "the id of the session is its main agent's, and not that of an actor of kind %s", a.Kind)
		}
	default:
		return invalid("actor.kind", "there is no kind of actor %q", a.Kind)
	}
	if len(a.ID) > maxActorID {
		return invalid("actor.id", "an actor's id has at most %d bytes", maxActorID)
	}
	return nil
}

// sideChat is the actor's kind where that is a side chat.
func sideChat(a tool.Actor) tool.ActorKind {
	if a.Kind == tool.ActorSideChat {
		return a.Kind
	}
	return ""
}

// actorID names an actor to the environment, which knows the main agent by the
// session.
func (s *live) actorID(a tool.Actor) string {
	if a.Kind == "" || a.Kind == tool.ActorMain {
		return s.id
	}
	return a.ID
}

// execute runs f as one call in the place, with its events around it.
func (s *live) execute(ctx context.Context, p *place, x Execution, f func(ctx context.Context, x *Execution) error) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if x.CallID == "" {
		x.CallID = "c-" + newID()
	}
	if x.Actor.Kind == "" {
		x.Actor.Kind = tool.ActorMain
	}
	if x.Actor.Kind == tool.ActorMain && x.Actor.ID == "" {
		x.Actor.ID = s.id
	}
	x.SessionID, x.StartedAt = s.id, s.m.o.Now()
	x.in(p)
	if x.admission == nil {
		x.admission = &admission{}
	}

	s.mu.Lock()
	if s.calls[x.CallID] {
		s.mu.Unlock()
		return invalid("callId", "a call %q is running already", x.CallID)
	}
	s.calls[x.CallID] = true
	s.m.sink.ExecutionStarted(x.told())
	s.mu.Unlock()

	settle, err := s.admit(ctx, p, &x)
	if err == nil {
		err = known(f(ctx, &x))
		settle()
	}
	if err != nil {
		err = s.explained(profile.Profile{Name: x.Profile, Backend: x.Backend}, err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, x.CallID)
	x.Duration = s.m.o.Now().Sub(x.StartedAt)
	if err != nil {
		x.Err = err
		s.m.sink.ExecutionFailed(x.told())
		return err
	}
	s.m.sink.ExecutionCompleted(x.told())
	return nil
}

// call does what a tool call asks for.
func (p *place) call(ctx context.Context, r CallRequest, callID string) (tool.Result, error) {
	return p.callWith(ctx, r, callID, p.reads(r), func(ctx context.Context, env backends.Environment, request tool.Request) (tool.Result, error) {
		if request.Mode == tool.ReadOnly {
			if err := p.refuseWrites(ctx, env, r); err != nil {
				return tool.Result{}, err
			}
		}
		result, err := env.Call(ctx, request)
		if err != nil {
			return tool.Result{}, p.fittingError(err, r)
		}
		result = p.fitting(result, r)
		if export, ok := exported(r.Name, result); ok {
			return p.present(ctx, env, r.Arguments, export)
		}
		return withText(r.Name, result), nil
	})
}

// caller runs a tool in an environment.
type caller func(ctx context.Context, env backends.Environment, request tool.Request) (tool.Result, error)

// callWith has the tool run in the place, within the limits of the place and the
// call.
func (p *place) callWith(ctx context.Context, r CallRequest, callID string, reads func(context.Context, backends.Environment) bool, run caller) (tool.Result, error) {
	if err := r.Constraints.forCall("constraints"); err != nil {
		return tool.Result{}, err
	}
	mode, err := p.mode(r.Mode, r.Actor, r.Constraints)
	if err != nil {
		return tool.Result{}, err
	}
	limits := p.toolLimits()
	request := tool.Request{
		ID: callID, Name: r.Name, Arguments: r.Arguments, Mode: mode,
		Actor:          tool.Actor{ID: p.s.actorID(r.Actor), Kind: r.Actor.Kind},
		MaxOutputBytes: limits.MaxOutputBytes,
	}
	budget, err := p.budget(ctx, r)
	if err != nil {
		return tool.Result{}, err
	}
	if n := r.Constraints.MaxOutputBytes; n > 0 {
		request.MaxOutputBytes = min(request.MaxOutputBytes, n)
	}
	var result tool.Result
	err = p.use(ctx, use{progress: r.Progress, reads: reads, budget: budget}, func(env backends.Environment, left time.Duration) error {
		request.Timeout = left
		result, err = run(ctx, env, request)
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	return result, nil
}

// budget is the time that a call may take: the lowest limit of all, 0 is none.
func (p *place) budget(ctx context.Context, r CallRequest) (time.Duration, error) {
	limit := lower(p.toolLimits().Timeout, r.Constraints.Timeout)
	group := tool.GroupOf(r.Name)
	if limit == 0 || group != tool.GroupShell && group != tool.GroupGit {
		return limit, nil
	}
	own, err := p.s.isOwn(ctx, r.Name)
	if err != nil || own || commandLimit(group, r.Arguments) > limit {
		return limit, err
	}
	return limit + callGrace, nil
}

// commandLimit is after how long the call stops waiting for its command by itself.
func commandLimit(group tool.Group, arguments json.RawMessage) time.Duration {
	var a struct {
		Seconds float64 `json:"timeout_seconds"`
	}
	// What is no number the tool refuses.
	if group != tool.GroupShell || json.Unmarshal(arguments, &a) != nil || a.Seconds <= 0 {
		return commandTime
	}
	return time.Duration(min(a.Seconds, maxCommandSeconds) * float64(time.Second))
}

// mode decides the permission mode of a tool call.
func (p *place) mode(asked tool.Mode, a tool.Actor, c Constraints) (tool.Mode, error) {
	return modeWithin(p.toolLimits(), asked, a, c)
}

// modeWithin decides a permission mode within the limits of a profile.
func modeWithin(limits profile.Profile, asked tool.Mode, a tool.Actor, c Constraints) (tool.Mode, error) {
	if asked != "" && !asked.Valid() {
		return "", invalid("permissionMode", "there is no permission mode %q", asked)
	}
	if asked == "" {
		asked = limits.PermissionMode
	}
	if a.Kind == tool.ActorSideChat || c.Filesystem != "" {
		asked = tool.ReadOnly
	}
	if !asked.Within(limits.MaxPermissionMode) {
		return "", tool.Errorf(tool.Denied, "the permission mode %s is above the ceiling of the profile %q, which is %s", asked, limits.Name, limits.MaxPermissionMode).
			WithHint("Ask for at most %s, or raise max_permission_mode in a profile and open a new session on it.", limits.MaxPermissionMode).
			WithPath("permissionMode")
	}
	return asked, nil
}

// refuseWrites denies tools that write files by themselves: the mode confines
// commands, and these run none.
func (p *place) refuseWrites(ctx context.Context, env backends.Environment, r CallRequest) error {
	name := r.Name
	list, err := p.descriptions(ctx, env)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(d tool.Description) bool { return d.Name == name })
	if i < 0 || list[i].Group != tool.GroupFile || list[i].Annotations.ReadOnly {
		return nil
	}
	return tool.Errorf(tool.Denied, "%s writes files, and this call may only read", name).
		WithHint("%s", p.toWrite(r.Actor, r.Constraints))
}

// withText gives a result the text that models read, where the far end left
// that to us.
func withText(name string, r tool.Result) tool.Result {
	if len(r.StructuredContent) == 0 || slices.ContainsFunc(r.Content, func(p tool.Part) bool { return p.Type == tool.PartText }) {
		return r
	}
	text := tool.Part{Type: tool.PartText, Quoted: tool.ViewToken(name, r.StructuredContent)}
	r.Content = append([]tool.Part{text}, r.Content...)
	return r
}
