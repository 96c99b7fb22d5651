package wire

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A beginning is an initialize that may be handled.
type beginning struct {
	data   Initialize
	first  bool                 // on this connection
	settle func(succeeded bool) // of the token
}

// read reads frames until the connection ends, and returns why it did, or nil when
// another goroutine reads on in its place. Its own answers it posts: it must not wait
// for the host to read. Of what a request answers that it runs itself, see [pace.Relief].
func (s *Server) read() error {
	for {
		f, err := s.reader.next()
		if err != nil {
			return err
		}
		r, err := s.frame(f)
		if err != nil {
			return err
		}
		if r != nil && s.runsHere(r) {
			turn := s.relief.Begin()
			s.run(r)
			if !s.relief.End(turn) {
				return nil
			}
			continue
		}
		if r != nil {
			s.dispatch(r)
		}
		giveWay(s.blocks && !s.reader.buffered())
	}
}

// frame takes one frame, and returns the request that it begins, if it does. Its
// error ends the connection.
func (s *Server) frame(f *rawFrame) (*Request, error) {
	method := string(f.method)
	if err := s.o.Token.check(f.token); err != nil {
		s.refuse(f, err)
		return nil, nil
	}
	switch method {
	case methodCancel:
		if r := s.request(f.id); r != nil {
			r.cancel()
		}
		return nil, nil
	case methodCallback:
		s.answered(string(f.id), f.data)
		return nil, nil
	case methodBody:
		return nil, s.piece(f)
	case methodBodyTaken:
		s.mu.Lock()
		defer s.mu.Unlock()
		if r := s.requests[string(f.id)]; r != nil && r.out != nil {
			r.out.grow(f.body)
		}
		return nil, nil
	}
	r, err := s.admit(f, method)
	if err != nil {
		s.refuse(f, err)
	}
	return r, nil
}

// refuse answers a frame that is not handled.
func (s *Server) refuse(f *rawFrame, err error) {
	s.post(errorFrame(string(f.id), err, s.hostHas(CapErrors)))
}

func (s *Server) request(id []byte) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[string(id)]
}

// admit registers a request, which must then be run, unless it may not be.
func (s *Server) admit(f *rawFrame, method string) (*Request, error) {
	if len(f.id) == 0 {
		return nil, tool.Errorf(tool.InvalidParams, "a request without an id").WithPath("id")
	}
	if method == "" {
		return nil, tool.Errorf(tool.InvalidParams, "a request without a method").WithPath("method")
	}
	if f.body > MaxBody {
		return nil, tool.Errorf(tool.InvalidParams, "a body of %d bytes; at most %d are taken", f.body, MaxBody)
	}
	r := &Request{ID: string(f.id), Method: method, server: s, size: int64(len(f.data)) + f.body}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return nil, &tool.Error{Kind: tool.BackendUnavailable, Message: "the worker is ending", Retryable: true}
	case s.requests[r.ID] != nil:
		return nil, tool.Errorf(tool.InvalidParams, "a request with the id %q is still running", clip(r.ID)).WithPath("id")
	case len(s.requests) >= s.o.MaxRequests:
		return nil, overloaded("%d requests are running", s.o.MaxRequests)
	case s.pending+r.size > s.o.MaxPending:
		return nil, overloaded("the requests that are running hold too much data")
	case s.state == stateFailed:
		return nil, tool.Errorf(tool.InvalidParams, "%s after initialize has failed: open a new connection", clip(method))
	case s.state == stateInitializing, s.state == stateNew && method != MethodInitialize:
		return nil, tool.Errorf(tool.InvalidParams, "%s before initialize has succeeded on this connection", clip(method))
	}
	r.Data = s.reader.take(f.data)
	if method == MethodInitialize {
		if err := s.beginInitialize(r, f.token); err != nil {
			return nil, err
		}
	}
	r.ctx, r.cancel = context.WithCancel(s.ctx)
	if f.body > 0 {
		r.in = newInbox(f.body, false, func(ctx context.Context, total int64) error {
			return s.writer.send(ctx, &Frame{ID: r.ID, Method: methodBodyTaken, Body: total}, nil, nil)
		})
	}
	s.requests[r.ID] = r
	s.pending += r.size
	s.handlers.Add(1)
	s.replies.Add(1)
	return r, nil
}

func overloaded(format string, args ...any) error {
	e := tool.Errorf(tool.Overloaded, format, args...).WithHint("try again when some of them have ended")
	e.Retryable = true
	return e
}

// beginInitialize checks an initialize before anything runs for it. s.mu is
// held.
func (s *Server) beginInitialize(r *Request, token []byte) error {
	b := &beginning{first: s.state == stateNew}
	err := r.Decode(&b.data)
	if err == nil {
		err = b.data.check()
	}
	if err == nil {
		b.settle, err = s.o.Token.fix(token)
	}
	if err != nil {
		if b.first {
			s.state = stateFailed
		}
		return err
	}
	r.begin = b
	if b.first {
		s.state = stateInitializing
		s.reader.Bulk(r.HostHas(CapBulk)) // what follows on the stream may depend on it
	}
	return nil
}

// initialized notes how an initialize ended, before its reply is written: an
// event after it must not be lost. A repeated one changes nothing.
func (s *Server) initialized(r *Request, err error) {
	r.begin.settle(err == nil)
	if !r.begin.first {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.state = stateFailed
		return
	}
	s.state = stateReady
	s.caps.Store(&r.begin.data.Capabilities)
}

// check refuses what no worker may accept.
func (in *Initialize) check() error {
	switch {
	case in.Version != Version:
		return tool.Errorf(tool.ProtocolMismatch, "the host speaks protocol %d; this worker speaks %d", in.Version, Version).
			WithHint("%s", sameProtocol())
	case !path.IsAbs(in.Root) && !filepath.IsAbs(in.Root):
		return tool.Errorf(tool.InvalidParams, "the root %q is not an absolute path", clip(in.Root)).WithPath("root")
	case !isComponent(in.Session):
		return tool.Errorf(tool.InvalidParams, "the session %q is not one path component", clip(in.Session)).WithPath("session")
	case in.Identity != "" && !isComponent(in.Identity):
		return tool.Errorf(tool.InvalidParams, "the identity %q is not one path component", clip(in.Identity)).WithPath("identity")
	}
	return nil
}

// isComponent reports whether s can be the name of one file.
func isComponent(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && !strings.ContainsAny(s, "/\\\x00")
}

// piece takes a piece of a request's body, or the news that the rest of it will
// not come. Pieces of what was refused are dropped.
func (s *Server) piece(f *rawFrame) error {
	if !s.reader.bulk {
		return nil
	}
	r := s.request(f.id)
	if r == nil || r.in == nil || r.givenUp() {
		return nil
	}
	if len(f.err) > 0 {
		r.in.abort(fmt.Errorf("the host did not send the whole body: %s", clip(string(f.err))))
		return nil
	}
	return r.in.receive(s.reader, f.raw)
}

// givenUp reports whether nobody waits for the request any more.
func (r *Request) givenUp() bool { return r.ctx.Err() != nil }

// answered hands the host's answer to the callback that waits for it.
func (s *Server) answered(id string, data []byte) {
	s.mu.Lock()
	answer := s.callbacks[id]
	delete(s.callbacks, id)
	s.mu.Unlock()
	if answer != nil {
		answer <- parseAnswer(id, bytes.Clone(data))
	}
}
