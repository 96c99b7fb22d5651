package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// eventBacklog bounds the process events that wait to be looked at.
const eventBacklog = 4096

// service is one running service with state of its own.
type service struct {
	*client.Client
	dir       string
	workspace string
	events    chan protocol.ProcessEventParams
}

// start starts a service on the configuration.
func (b *bench) start(ctx context.Context, config string) (*service, error) {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return nil, err
	}
	s := &service{dir: dir, workspace: filepath.Join(dir, "workspace"), events: make(chan protocol.ProcessEventParams, eventBacklog)}
	if err := s.begin(ctx, b.caisson, config); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *service) begin(ctx context.Context, caisson, config string) error {
	if err := os.Mkdir(s.workspace, 0o700); err != nil {
		return err
	}
	file := filepath.Join(s.dir, "config.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, caisson, "serve", "--log-level", "error")
	command.Stderr = os.Stderr
	command.Env = append(os.Environ(), "CAISSON_CONFIG="+file)
	c, err := client.Start(command, client.Options{ProcessEvent: func(p protocol.ProcessEventParams) {
		select {
		case s.events <- p:
		default: // nobody waits for so many
		}
	}})
	if err != nil {
		return err
	}
	s.Client = c
	_, err = c.Initialize(ctx, protocol.InitializeParams{Options: protocol.InitializationOptions{
		StateDir: filepath.Join(s.dir, "state"), DataDir: filepath.Join(s.dir, "data"),
	}})
	return err
}

func (s *service) stop() error { return errors.Join(s.Close(), os.RemoveAll(s.dir)) }

// open opens a session and returns its id.
func (s *service) open(ctx context.Context, profile string) (string, error) {
	uri := (&url.URL{Scheme: "file", Path: s.workspace}).String()
	r, err := s.SessionOpen(ctx, protocol.SessionOpenParams{Workspace: &uri, Profile: profile})
	return r.Session.ID, err
}

func (s *service) delete(ctx context.Context, session string) error {
	_, err := s.SessionDelete(ctx, protocol.SessionDeleteParams{SessionID: session})
	return err
}

// tool calls a tool and fails when the tool does.
func (s *service) tool(ctx context.Context, session, name string, arguments map[string]any) error {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	r, err := s.ToolCall(ctx, protocol.ToolCallParams{SessionID: session, Name: name, Arguments: raw})
	if err == nil && r.IsError {
		err = fmt.Errorf("%s: %s", name, r.Content[0].Text)
	}
	return err
}

// exited waits for the event that tells the end of the process.
func (s *service) exited(ctx context.Context, process string) error {
	for {
		select {
		case e := <-s.events:
			if e.Process.ID == process && e.Type == protocol.ProcessEventExited {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// timeCommand is the median time of a command of this machine.
func timeCommand(ctx context.Context, n int, name string, args ...string) (time.Duration, error) {
	return median(ctx, n, func() error {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	})
}
