package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/guard"
	"github.com/caisson-dev/caisson/session/store"
)

// usedInterval is how old the record of what a session has used may become: a service
// that is killed forgets at most what happened since, and what calls that ran then took.
const usedInterval = time.Second

// Confirmation is what a person is asked before a call may run.
type Confirmation struct {
	SessionID string
	CallID    string
	// Tool is the call's name in events, Arguments is what it was called with, long
	// texts cut.
	Tool      string
	Arguments json.RawMessage
	// Reason says in one sentence why there is a question.
	Reason string
}

// Decision is a person's answer.
type Decision struct {
	Allow bool
	// Remember gives the same answer to the same call for the rest of the session.
	Remember bool
}

// Confirm asks a person and waits for the answer. An error means no. The context
// is over when nobody waits for the answer any more.
type Confirm func(ctx context.Context, c Confirmation) (Decision, error)

// admission is what an execution is admitted by, and what it came to.
type admission struct {
	// tool is the name that rules have for it; "" is a tool's, by its group.
	tool string
	mode tool.Mode
	// arguments are made when somebody asks for them.
	arguments func() (json.RawMessage, error)
	// files are what the call brings along.
	files   map[string][]byte
	nowhere bool // it does not run in the workspace
	// judgedAt is the place in whose directory it runs; nil is the one that it is
	// admitted to.
	judgedAt *place
	confirm  Confirm // nil where there is nobody to ask
	output   int64   // bytes that it returned
}

// given are arguments as they came.
func given(raw json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return raw, nil }
}

// made are arguments of what is no tool, in the words of the protocol.
func made(v any) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return json.Marshal(v) }
}

// admitted is the guard's side of one session.
type admitted struct {
	once   sync.Once
	guard  *guard.Guard // nil where nothing is configured
	broken error        // why nothing can be admitted

	mu    sync.Mutex // held while used is saved
	saved time.Time
	late  *time.Timer // saves what was used since, should no call do it; nil when nothing was
}

// policies are the guard of a new session, as it stays with it: what the user
// wrote and what the project adds. Both must admit a call, so that a project only
// tightens.
func policies(user, project config.Guard) []guard.Policy {
	var all []guard.Policy
	for _, g := range []struct {
		source string
		config.Guard
	}{{"the user's configuration", user}, {config.ProjectFile, project}} {
		if g.Empty() {
			continue
		}
		p := guard.Policy{
			Source: g.source, Rate: guard.Rate(g.Rate), Budget: guard.Budget(g.Budget), ConfirmTimeout: g.ConfirmTimeout,
		}
		for _, r := range g.Rules {
			actors := make([]tool.ActorKind, len(r.Actors))
			for i, a := range r.Actors {
				actors[i] = tool.ActorKind(a)
			}
			p.Rules = append(p.Rules, guard.Rule{Tools: r.Tools, Match: r.Match, Actors: actors, Action: guard.Action(r.Action), Reason: r.Reason})
		}
		all = append(all, p)
	}
	return all
}

// savedGuard is the guard as it is kept with a session; nil where there is none. A
// guard that would not be understood later is an error now.
func (m *Manager) savedGuard(c *config.Config, project config.Project) (json.RawMessage, error) {
	all := policies(c.Guard, project.Guard)
	if len(all) == 0 {
		return nil, nil
	}
	if _, err := guard.New(guard.Options{Policies: all, Now: m.o.Now}); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// readPolicies reads what savedGuard has made. What this build does not know might
// have tightened more, and so is an error.
func readPolicies(raw json.RawMessage) (all []guard.Policy, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, tool.Errorf(tool.Internal, "the guard that is saved with the session cannot be read by this build: %w", err).
			WithHint("Use the build that made the session, or open a new one.")
	}
	return all, nil
}

// guarded is the session's guard, nil for none. One that cannot be read admits
// nothing.
func (s *live) guarded() (*guard.Guard, error) {
	a := &s.admitted
	a.once.Do(func() {
		s.mu.Lock()
		raw := s.saved.Guard
		s.mu.Unlock()
		if len(raw) == 0 {
			return
		}
		o := guard.Options{Now: s.m.o.Now}
		used, err := s.m.store.Used(s.id)
		if err == nil {
			o.Used = guard.Usage{Calls: used.Calls, Runtime: used.Runtime, OutputBytes: used.OutputBytes}
			for _, r := range used.Rates {
				o.Levels = append(o.Levels, guard.Level(r))
			}
			o.Policies, err = readPolicies(raw)
		}
		if err == nil {
			a.guard, err = guard.New(o)
		}
		a.broken = known(err)
	})
	return a.guard, a.broken
}

// admit asks the guard, and the lists of commands of a local profile, whether the
// call may run in the place. What it returns is called at the call's end.
func (s *live) admit(ctx context.Context, p *place, x *Execution) (settle func(), err error) {
	settle = func() {}
	g, err := s.guarded()
	if err != nil {
		return settle, err
	}
	if err := s.admitInto(ctx, p, x); err != nil || g == nil {
		return settle, err
	}
	call, err := s.guardCall(ctx, p, x)
	if err != nil {
		return settle, err
	}
	ticket, err := g.Admit(ctx, call, s.asking(x))
	if err != nil {
		return settle, err
	}
	if err := s.keepUsed(false); err != nil {
		// A budget that cannot be kept would be none.
		ticket.Done(0)
		return settle, known(err)
	}
	return func() {
		ticket.Done(x.admission.output)
		if err := s.keepUsed(false); err != nil {
			s.m.log.Warn("what the session has used could not be saved", "session", s.id, "error", err)
		}
	}, nil
}

// move notes that the call, which was admitted to the place from, runs in the place
// to, whose lists of commands hold then.
func (s *live) move(ctx context.Context, from, to *place, x *Execution) error {
	x.in(to)
	if to == from {
		return nil
	}
	return s.admitInto(ctx, to, x)
}

// admitInto checks the lists of commands of the place's profile, where it has some.
func (s *live) admitInto(ctx context.Context, p *place, x *Execution) error {
	if x.admission.tool == "" {
		switch tool.GroupOf(x.Tool) {
		case tool.GroupShell, tool.GroupGit, tool.GroupProcess:
		default:
			return nil // it runs no commands
		}
	}
	lists, err := p.lists()
	if err != nil || lists == nil {
		return err
	}
	call, err := s.guardCall(ctx, p, x)
	if err != nil {
		return err
	}
	return lists.Check(call)
}

// asking asks for the execution, nil where there is nobody to ask.
func (s *live) asking(x *Execution) guard.Ask {
	if x.admission.confirm == nil {
		return nil
	}
	return func(ctx context.Context, q guard.Question) (guard.Answer, error) {
		d, err := x.admission.confirm(ctx, Confirmation{
			SessionID: s.id, CallID: x.CallID, Tool: x.Tool, Arguments: q.Call.Arguments, Reason: q.Reason,
		})
		return guard.Answer(d), err
	}
}

// guardCall is the execution as the guard sees it.
func (s *live) guardCall(ctx context.Context, p *place, x *Execution) (guard.Call, error) {
	a := x.admission
	c := guard.Call{ID: x.CallID, Tool: a.tool, Actor: x.Actor.Kind, Mode: a.mode, Files: a.files}
	switch a.tool {
	case processStart:
		// A process is started where shell.bash runs, and as freely: what keeps a call
		// from a shell keeps it from that.
		c.Also = []string{"shell.bash"}
	case "":
		group := tool.GroupOf(x.Tool)
		if group != tool.GroupPlugins {
			own, err := s.isOwn(ctx, x.Tool)
			if err != nil {
				return c, err
			}
			if own {
				// A registered tool that hides a built-in one is refused as both.
				c.Also = []string{toolName{group, x.Tool}.String()}
				group = tool.GroupPlugins
			}
		}
		c.Tool = toolName{group, x.Tool}.String()
	}
	if a.arguments != nil {
		raw, err := a.arguments()
		if err != nil {
			return c, known(err)
		}
		c.Arguments = raw
	}
	if a.judgedAt != nil {
		p = a.judgedAt
	}
	if !a.nowhere {
		c.Dir, c.Names = s.directory(p), s.directoryNames(p)
	}
	return c, nil
}

// directory is where commands of the place begin, "" while that is not known.
func (s *live) directory(p *place) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.saved.Root != "":
		return p.saved.Root
	case p.saved.Profile.Backend == profile.Local:
		return s.folder
	case p.saved.Profile.Backend != profile.SSH:
		return p.saved.Profile.Workspace
	}
	return ""
}

// directoryNames are the paths by which the place's directory may have been opened:
// tools take them as well as the one that it is.
func (s *live) directoryNames(p *place) []string {
	saved := p.profile()
	switch saved.Backend {
	case profile.Local:
		if s.folder != "" {
			return []string{s.folder}
		}
	case profile.SSH:
		// The profile's is the parent of the environment's own, which may be behind a link.
		if root := s.directory(p); root != "" {
			return []string{path.Join(saved.Workspace, p.identity(), path.Base(root))}
		}
	case profile.WASM:
	default:
		return []string{saved.Workspace}
	}
	return nil
}

// isOwn reports whether the session has the tool from a module or a pack. What packs
// have is known once their environment is open.
func (s *live) isOwn(ctx context.Context, name string) (bool, error) {
	if s.registeredTool(name) != nil {
		return true, nil
	}
	p, err := s.packPlace(ctx, name, nil)
	return p != nil, err
}

// listsOf are the commands that a local profile allows and denies; nil for none.
func listsOf(p profile.Profile) (*guard.Lists, error) {
	if p.Backend != profile.Local {
		return nil, nil
	}
	return guard.NewLists(p.AllowedCommands, p.DeniedCommands)
}

// usedOf is what the guard's session has used, as it is saved.
func usedOf(g *guard.Guard) store.Used {
	u := g.Used()
	used := store.Used{Calls: u.Calls, Runtime: u.Runtime, OutputBytes: u.OutputBytes}
	for _, l := range g.Levels() {
		used.Rates = append(used.Rates, store.Rate(l))
	}
	return used
}

// used is what the session has used until now. Of another service's it is what that
// has saved.
func (m *Manager) used(id string) (store.Used, error) {
	l := m.find(id)
	if l == nil {
		u, err := m.store.Used(id)
		return u, known(err)
	}
	g, err := l.guarded()
	if err != nil || g == nil {
		return store.Used{}, err
	}
	return usedOf(g), nil
}

// keepUsed saves what the session has used, if it has a budget or a rate: at once when the
// record is older than usedInterval, and otherwise as soon as it is, by a timer. With last
// it is saved at once in any case, so that closing and resuming a session gives it no new
// budget.
func (s *live) keepUsed(last bool) error {
	g, err := s.guarded()
	if err != nil || g == nil || !g.Limited() {
		return nil // which admits nothing, or uses nothing up
	}
	a := &s.admitted
	a.mu.Lock()
	defer a.mu.Unlock()
	now := s.m.o.Now()
	if age := now.Sub(a.saved); !last && age >= 0 && age < usedInterval {
		if a.late == nil {
			a.late = time.AfterFunc(usedInterval-age, s.keepUsedLate)
		}
		return nil
	}
	a.nothingDue()
	if err := s.write(func() error { return s.m.store.SaveUsed(s.id, usedOf(g)) }); err != nil {
		return err
	}
	a.saved = now
	return nil
}

// keepUsedLate saves what was used after the last record, when that is old. A session
// that was given up meanwhile has saved it.
func (s *live) keepUsedLate() {
	if err := s.keepUsed(true); err != nil && !errors.Is(err, errLeft) {
		s.m.log.Warn("what the session has used could not be saved", "session", s.id, "error", err)
	}
}

// nothingDue ends the wait for a later save. The caller holds mu.
func (a *admitted) nothingDue() {
	if a.late != nil {
		a.late.Stop()
		a.late = nil
	}
}

// startArguments is a start in the protocol's words.
type startArguments struct {
	Command string            `json:"command,omitempty"`
	Argv    []string          `json:"argv,omitempty"`
	CWD     string            `json:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	TTY     *tool.TTY         `json:"tty,omitempty"`
}

// codeArguments is a program in the protocol's words.
type codeArguments struct {
	Code string `json:"code"`
}

// jobArguments is a job in the protocol's words, but for its files: of those it has
// what tells them from others.
type jobArguments struct {
	Argv   []string           `json:"argv,omitempty"`
	Script *jobScript         `json:"script,omitempty"`
	CWD    string             `json:"cwd,omitempty"`
	Stdin  string             `json:"stdin,omitempty"`
	Env    map[string]string  `json:"env,omitempty"`
	Files  map[string]jobFile `json:"inputFiles,omitempty"`
	Where  jobWhere           `json:"constraints,omitzero"`
}

// jobWhere are the constraints that decide which environment a job runs in: what is
// harmless in one need not be in another.
type jobWhere struct {
	Profile     string  `json:"profile,omitempty"`
	Image       string  `json:"image,omitempty"`
	Network     string  `json:"network,omitempty"`
	Memory      int64   `json:"memory,omitempty"`
	CPUs        float64 `json:"cpus,omitempty"`
	TmpfsNoexec *bool   `json:"tmpfsNoexec,omitempty"`
}

type jobScript struct {
	Interpreter string `json:"interpreter"`
	Source      string `json:"source"`
}

type jobFile struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ofJob is what a job is admitted by.
func ofJob(job backends.JobRequest, c Constraints, confirm Confirm) *admission {
	a := &admission{tool: shellJob, mode: job.Mode, confirm: confirm, nowhere: job.CWD == "", files: map[string][]byte{}}
	where := jobWhere{Profile: c.Profile, Image: c.Image, Network: c.Network, Memory: c.Memory, CPUs: c.CPUs, TmpfsNoexec: c.TmpfsNoexec}
	for _, in := range job.Inputs {
		a.files[in.Path] = in.Data
	}
	a.arguments = func() (json.RawMessage, error) {
		j := jobArguments{Argv: job.Argv, CWD: job.CWD, Stdin: string(job.Stdin), Env: job.Environment, Where: where}
		if job.Script != nil {
			j.Script = &jobScript{Interpreter: job.Script.Interpreter, Source: job.Script.Source}
		}
		for path, data := range a.files {
			if j.Files == nil {
				j.Files = map[string]jobFile{}
			}
			sum := sha256.Sum256(data)
			j.Files[path] = jobFile{Bytes: len(data), SHA256: hex.EncodeToString(sum[:])}
		}
		return json.Marshal(j)
	}
	return a
}

// returned is how many bytes a result holds.
func returned(r tool.Result) int64 {
	n := len(r.StructuredContent)
	text := 0
	for _, part := range r.Content {
		text += len(part.Text) + len(part.Quoted) + len(part.Data)
	}
	return int64(max(n, text)) // the text is most often the same in other words
}
