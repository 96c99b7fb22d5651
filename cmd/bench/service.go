package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// service is one running service with state of its own.
type service struct {
	*client
	dir       string
	workspace string
	exits     map[string]time.Duration // how long processes ran whose exited event came
}

// start starts a service on the configuration, with state of its own and these
// variables beside the others. It returns when the service has answered
// initialize.
func (b *bench) start(ctx context.Context, config string, env ...string) (*service, error) {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return nil, err
	}
	s, err := b.startIn(ctx, dir, config, env...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// startIn is start in a directory that may have been used before.
func (b *bench) startIn(ctx context.Context, dir, config string, env ...string) (*service, error) {
	s := &service{dir: dir, workspace: filepath.Join(dir, "workspace"), exits: map[string]time.Duration{}}
	if err := errors.Join(os.MkdirAll(s.workspace, 0o700), os.WriteFile(s.config(), []byte(config), 0o600)); err != nil {
		return nil, err
	}
	return s, s.begin(ctx, b.caisson, env)
}

func (s *service) config() string { return filepath.Join(s.dir, "config.json") }

func (s *service) begin(ctx context.Context, caisson string, env []string) (err error) {
	command := exec.CommandContext(ctx, caisson, "serve", "--log-level", "error")
	command.Stderr = os.Stderr
	command.Env = environment(append(env, "CAISSON_CONFIG="+s.config())...)
	if s.client, err = dial(command); err != nil {
		return err
	}
	s.notified = s.event
	_, err = s.call(protocol.MethodInitialize, params(protocol.InitializeParams{Options: protocol.InitializationOptions{
		StateDir: filepath.Join(s.dir, "state"), DataDir: filepath.Join(s.dir, "data"),
	}}))
	if err != nil {
		return errors.Join(err, s.close())
	}
	return s.send("", protocol.MethodInitialized, []byte("{}"))
}

// event keeps the ends of processes.
func (s *service) event(method string, message []byte) {
	if method != protocol.MethodProcessEvent {
		return
	}
	var e struct {
		Params protocol.ProcessEventParams `json:"params"`
	}
	if json.Unmarshal(message, &e) == nil && e.Params.Type == protocol.ProcessEventExited {
		p := e.Params.Process
		s.exits[p.ID] = p.EndedAt.Sub(p.StartedAt)
	}
}

// stop ends the service and removes its state.
func (s *service) stop() error { return errors.Join(s.end(), os.RemoveAll(s.dir)) }

func (s *service) end() error {
	_, err := s.call(protocol.MethodShutdown, []byte("null"))
	err = errors.Join(err, s.send("", protocol.MethodExit, []byte("null")))
	return errors.Join(err, s.close())
}

// ask makes a request and decodes its result.
func ask[R any](s *service, method string, p any) (R, error) {
	var answer struct {
		Result R `json:"result"`
	}
	message, err := s.call(method, params(p))
	if err == nil {
		err = json.Unmarshal(message, &answer)
	}
	return answer.Result, err
}

// open opens a session and returns its id.
func (s *service) open(profile string) (string, error) {
	uri := (&url.URL{Scheme: "file", Path: s.workspace}).String()
	r, err := ask[protocol.SessionOpenResult](s, protocol.MethodSessionOpen, protocol.SessionOpenParams{Workspace: &uri, Profile: profile})
	return r.Session.ID, err
}

func (s *service) delete(session string) error {
	_, err := s.call(protocol.MethodSessionDelete, params(protocol.SessionDeleteParams{SessionID: session}))
	return err
}

// tool returns a function that calls a tool and fails when the tool does.
func (s *service) tool(session, name string, arguments map[string]any) func() error {
	p := params(protocol.ToolCallParams{SessionID: session, Name: name, Arguments: params(arguments)})
	return func() error {
		message, err := s.call(protocol.MethodToolCall, p)
		if err != nil {
			return err
		}
		// In text the quotes would be escaped.
		if bytes.Contains(message, []byte(`"isError":true`)) {
			return fmt.Errorf("%s: %s", name, message)
		}
		return nil
	}
}

// ended reports whether the event of a process's end has come.
func (s *service) ended(process string) bool {
	_, ended := s.exits[process]
	return ended
}

// run starts a process and waits for the event that tells its end.
func (s *service) run(p protocol.ProcessStartParams) error {
	r, err := ask[protocol.ProcessResult](s, protocol.MethodProcessStart, p)
	if err != nil {
		return err
	}
	for !s.ended(r.Process.ID) {
		if _, _, err := s.next(); err != nil {
			return err
		}
	}
	delete(s.exits, r.Process.ID)
	return nil
}
