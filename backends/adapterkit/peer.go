package adapterkit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// peer is the connection of a Delegated.
type peer struct {
	name   string
	token  string
	client *wire.Client
	stream io.Closer
	// leaving says that the peer was told to end, so that its end is no failure.
	leaving atomic.Bool
	watched sync.WaitGroup
}

// connect starts the peer, or takes the connection that there is.
func (d *Delegated) connect(s *Session) (*peer, error) {
	var stream io.ReadWriteCloser
	name := "the delegated peer"
	if len(d.o.Command) == 0 {
		stream = &given{Reader: d.o.Output, Writer: d.o.Input, close: d.o.Close}
	} else {
		name = d.o.Command[0]
		p, err := program.Start(program.Options{
			Argv: d.o.Command, Env: d.o.Env, Stderr: os.Stderr, Grace: d.o.ShutdownGrace,
		})
		if err != nil {
			return nil, tool.Errorf(tool.BackendUnavailable, "%s cannot be started: %w", name, err)
		}
		stream = p
	}
	p := &peer{name: name, token: newToken(), stream: stream}
	p.client = wire.NewClient(stream, wire.ClientOptions{
		Token:   p.token,
		OnEvent: s.EmitProcess,
		OnCallback: func(ctx context.Context, call wire.ToolCall) (tool.Result, error) {
			// The context of a callback is that of the request that it belongs to.
			r, _ := ctx.Value(callerKey{}).(*Request)
			if r == nil {
				return tool.Result{}, errors.New("a callback without a program")
			}
			return r.InvokeTool(ctx, call)
		},
	})
	return p, nil
}

// callerKey is the key of the request that is being forwarded.
type callerKey struct{}

func newToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// handOn is the data of initialize for the peer: the binding as it came, whatever
// members it has. Beside the binding stands what the host understands, of which
// only what this kit passes on counts, and its wish for a socket, which would lead
// past the adapter.
func handOn(data json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	delete(members, "socket")
	if raw, ok := members["capabilities"]; ok {
		var all []string
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(c string) bool { return c != wire.CapBulk && c != wire.CapErrors })
		raw, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		members["capabilities"] = raw
	}
	return json.Marshal(members)
}

// initialize hands the binding on and checks the answer.
func (p *peer) initialize(ctx context.Context, binding json.RawMessage, required []string) (wire.Initialized, error) {
	var out wire.Initialized
	binding, err := handOn(binding)
	if err != nil {
		return out, err
	}
	reply, err := p.client.Do(ctx, wire.ClientRequest{Method: wire.MethodInitialize, Data: binding})
	if err != nil {
		return out, p.about(err)
	}
	if err := reply.Decode(&out); err != nil {
		return out, err
	}
	switch {
	case out.Version != wire.Version:
		return out, tool.Errorf(tool.ProtocolMismatch, "%s speaks protocol %d; this adapter speaks %d", p.name, out.Version, wire.Version).
			WithHint("delegate to a program that speaks protocol %d", wire.Version)
	case !path.IsAbs(out.Root) && !filepath.IsAbs(out.Root):
		return out, tool.Errorf(tool.ProtocolMismatch, "%s answered with the root %q, which is not an absolute path", p.name, out.Root)
	}
	for _, c := range required {
		if !slices.Contains(out.Capabilities, c) {
			return out, tool.Errorf(tool.Unsupported, "%s lacks the capability %s", p.name, c)
		}
	}
	out.SocketConnected = false
	return out, nil
}

// clean is an error without the peer's token, which a peer may have said: it is
// nobody's but the two's.
func (p *peer) clean(err error) error {
	if err == nil {
		return nil
	}
	var e *tool.Error
	said := err.Error()
	if errors.As(err, &e) {
		said += e.Hint
	}
	redact := func(text string) string { return strings.ReplaceAll(text, p.token, "[token]") }
	switch {
	case !strings.Contains(said, p.token):
		return err
	case e == nil:
		return errors.New(redact(said))
	}
	cleaned := *e
	cleaned.Message, cleaned.Hint, cleaned.Err = redact(e.Message), redact(e.Hint), nil
	return &cleaned
}

// about says which peer a lost connection was to.
func (p *peer) about(err error) error {
	if p.client.Err() == nil {
		return p.clean(err)
	}
	return &tool.Error{Kind: tool.BackendUnavailable, Message: p.lost().Error(), Err: err}
}

// exitWait is how long the end of a connection waits for the exit that explains it.
const exitWait = time.Second

// lost says how the connection was lost.
func (p *peer) lost() error {
	reason := p.client.Err()
	if x, ok := p.stream.(*program.Program); ok {
		x.ExitedWithin(exitWait)
		if err := x.Err(); err != nil {
			return err
		}
	}
	if errors.Is(reason, io.EOF) {
		return fmt.Errorf("%s closed its output", p.name)
	}
	return p.clean(fmt.Errorf("the connection to %s failed: %w", p.name, reason))
}

// watch ends the session when the peer ends.
func (p *peer) watch(s *Session) {
	p.watched.Go(func() {
		<-p.client.Done()
		if p.leaving.Load() {
			s.end(errAsked)
			return
		}
		s.Fail(p.lost())
		_ = p.stream.Close() // at once, and Close tells how that went
	})
}

// forward sends a request on and waits for its reply.
func (p *peer) forward(ctx context.Context, r *Request) (wire.Response, error) {
	response, err := p.send(ctx, r)
	err = p.clean(err)
	if err != nil && p.client.Err() != nil && !p.leaving.Load() {
		// Before this request is answered: that it failed is then told by the end of
		// the connection, and the host knows that it has to begin anew.
		r.session.Fail(p.lost())
	}
	return response, err
}

func (p *peer) send(ctx context.Context, r *Request) (wire.Response, error) {
	ctx = context.WithValue(ctx, callerKey{}, r)
	var data any
	if r.Data != nil {
		data = r.Data
	}
	switch r.Method {
	case wire.MethodExportStream:
		size, body, err := p.client.Stream(ctx, r.Method, data)
		if err != nil {
			return wire.Response{}, err
		}
		return wire.Response{Data: struct{}{}, Stream: body, Size: size}, nil
	case wire.MethodShutdown:
		p.leaving.Store(true)
	}
	reply, err := p.client.Do(ctx, wire.ClientRequest{Method: r.Method, Data: data, Body: r.Body})
	if err != nil {
		return wire.Response{}, err
	}
	response := wire.Response{Body: reply.Body}
	if reply.Data != nil {
		response.Data = reply.Data
	}
	return response, nil
}

// close ends the connection and waits for the peer's end.
func (p *peer) close() error {
	p.leaving.Store(true)
	// The stream says how the peer ended, whoever closes it first.
	err := p.client.Close()
	if again := p.stream.Close(); err == nil {
		err = again
	}
	p.watched.Wait()
	return err
}

// given is a connection that the author made.
type given struct {
	io.Reader
	io.Writer
	close func() error
	once  sync.Once
	err   error
}

func (g *given) Close() error {
	g.once.Do(func() { g.err = g.close() })
	return g.err
}
