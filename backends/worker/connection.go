package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/pack"
)

// connection is one stream with a host: what it may do depends on whether it
// initialized. It is the handler of its requests.
type connection struct {
	server *server
	wire   *wire.Server
	late   *time.Timer // ends a connection that does not initialize; may be nil
	asked  bool        // it asked for the shutdown; under the server's lock

	mu      sync.Mutex
	begun   bool     // initialize was tried
	session *session // nil until it succeeded
}

// Handle does what a request asks for.
func (c *connection) Handle(ctx context.Context, r *wire.Request) (wire.Response, error) {
	if r.Method == wire.MethodInitialize {
		return c.initialize(ctx, r)
	}
	c.mu.Lock()
	o := c.session
	c.mu.Unlock()
	if o == nil {
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "%q came before initialize had succeeded", r.Method)
	}
	switch r.Method {
	case wire.MethodExecute:
		return c.execute(ctx, o, r)
	case wire.MethodShutdown:
		return c.shutdown(ctx, r)
	case wire.MethodJobRun:
		return c.server.runJob(ctx, o, r)
	case wire.MethodToolsList:
		return data(wire.ToolList{Tools: o.packs.Beside(o.tools.Descriptions())}, nil)
	case wire.MethodPacksAdd:
		return addPack(ctx, o, r)
	}
	if handle, ok := processMethods[r.Method]; ok {
		return handle(ctx, c.server, o, r)
	}
	if handle, ok := fileMethods[r.Method]; ok {
		return handle(ctx, o, r)
	}
	return wire.Response{}, wire.UnknownMethod(r.Method)
}

// data is the response that holds v, or the error.
func data(v any, err error) (wire.Response, error) {
	if err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Data: v}, nil
}

// initialize binds the connection, or, when it is bound, answers the same
// again. One that failed is of no more use.
func (c *connection) initialize(ctx context.Context, r *wire.Request) (wire.Response, error) {
	var in wire.Initialize
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	c.mu.Lock()
	again, bound := c.begun, c.session != nil
	c.begun = true
	c.mu.Unlock()
	if again && !bound {
		return wire.Response{}, tool.Errorf(tool.InvalidParams,
			"initialize was tried on this connection already: open a new one")
	}
	o, err := c.server.bind(ctx, in)
	if err != nil {
		return wire.Response{}, err
	}
	if !bound {
		if err := c.server.join(c); err != nil {
			return wire.Response{}, err
		}
		if c.late != nil {
			c.late.Stop()
		}
		c.mu.Lock()
		c.session = o
		c.mu.Unlock()
	}
	reply := wire.Initialized{
		Version:      wire.Version,
		Root:         o.root.Dir(),
		Capabilities: c.server.capabilities(),
	}
	if in.Socket != nil {
		reply.SocketConnected = c.server.goOver(*in.Socket)
	}
	return wire.Response{Data: reply}, nil
}

// withheld names capabilities, separated by commas, that this build keeps to
// itself. Only the linker sets it, for tests that need an older worker.
var withheld string

// Capabilities are what every worker of ours announces.
func Capabilities() []string {
	return []string{
		wire.CapProcessStart, wire.CapBulk, wire.CapErrors, wire.CapFS, wire.CapProcess,
		wire.CapLimits, wire.CapShutdown, wire.CapForget, wire.CapTools, wire.CapPacks, wire.CapActors, wire.CapJob,
	}
}

func (s *server) capabilities() []string {
	all := Capabilities()
	if s.o.ShareDir != "" {
		all = append(all, wire.CapSocket)
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return slices.Contains(strings.Split(withheld, ","), name)
	})
}

// execute runs one workspace tool.
func (c *connection) execute(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.Execute
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	if in.Actor == "" {
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "the call has no actor").WithPath("actor")
	}
	actor, err := o.actor(in.Actor, in.ActorKind)
	if err != nil {
		return wire.Response{}, err
	}
	mode, err := c.server.mode(in.PermissionMode)
	if err != nil {
		return wire.Response{}, err
	}
	call := tool.Request{
		ID:             in.Call.ID,
		Name:           in.Call.Name,
		Arguments:      json.RawMessage(in.Call.Arguments),
		Actor:          actor,
		Mode:           mode,
		MaxOutputBytes: c.server.outputLimit(in.MaxOutputBytes),
	}
	if r.Body != nil {
		if in.Call.Arguments != "" {
			return wire.Response{}, tool.Errorf(tool.InvalidParams, "the call has arguments twice").WithPath("call.arguments")
		}
		call.Arguments = r.Body
	}
	if o.packs.Has(call.Name) {
		return data(o.packs.Call(ctx, call))
	}
	return data(o.tools.Call(ctx, call))
}

// addPack makes the tools of a pack the session's.
func addPack(ctx context.Context, o *session, r *wire.Request) (wire.Response, error) {
	var in wire.PackAdd
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	tools, err := o.packs.Add(ctx, tool.Pack{Name: in.Name, Command: in.Command, SHA256: in.SHA256}, r.Body)
	if errors.Is(err, pack.ErrSource) {
		return data(wire.PackAdded{NeedSource: true}, nil)
	}
	return data(wire.PackAdded{Tools: tools}, err)
}

// mode is what a request that asks for m gets: m itself, or the worker's
// default for none. The ceiling holds whatever a frame says.
func (s *server) mode(m tool.Mode) (tool.Mode, error) {
	if m == "" {
		m = s.o.Mode
	}
	switch {
	case !m.Valid():
		return "", tool.Errorf(tool.InvalidParams, "unknown permission mode %q", m).WithPath("permission_mode")
	case !m.Within(s.o.Ceiling):
		return "", tool.Errorf(tool.Denied, "the permission mode %s is above this environment's ceiling, %s", m, s.o.Ceiling).
			WithHint("raise max_permission_mode in the profile and open a new session")
	}
	return m, nil
}

// outputLimit is the smaller one of what the host asks for and the worker's own.
func (s *server) outputLimit(asked int64) int64 {
	own := s.o.MaxOutputBytes
	if asked <= 0 || own > 0 && own < asked {
		return own
	}
	return asked
}

// shutdown ends the worker in order and answers when nothing is left to fail.
// The worker exits once the host has hung up, or shortly after.
func (c *connection) shutdown(_ context.Context, r *wire.Request) (wire.Response, error) {
	var in wire.Shutdown
	if r.Data != nil {
		if err := r.Decode(&in); err != nil {
			return wire.Response{}, err
		}
	}
	s := c.server
	s.stopListening()
	err := s.cleanUp(in.Remove || s.bound().removeOnExit(), in.Forget)
	s.mu.Lock()
	c.asked = true
	s.mu.Unlock()
	time.AfterFunc(goodbye, func() { s.end(nil) })
	return data(struct{}{}, err)
}
