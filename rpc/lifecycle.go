package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// initialize opens what the connection works with. When that fails the client
// may try again with other options.
func (r *request) initialize(ctx context.Context, p *protocol.InitializeParams) (*protocol.InitializeResult, error) {
	opened, err := r.openServices(ctx, p)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.services = opened
	r.client = p.Capabilities
	if p.Trace != "" {
		r.trace = p.Trace
	}
	if r.phase != initializing {
		// The connection ended meanwhile: nobody else will end what was opened.
		return nil, fmt.Errorf("initialize: %w", errEnding)
	}
	r.phase, r.greeted = running, true
	if p.ProcessID != nil {
		r.watchClient(*p.ProcessID)
	}
	return &protocol.InitializeResult{
		ProtocolVersion: protocol.Version,
		ServerInfo:      protocol.ServerInfo{Name: "caisson", Version: r.o.Version},
		Capabilities: protocol.ServerCapabilities{
			Backends:         opened.Backends,
			MaxMessageBytes:  protocol.MaxMessageBytes,
			MaxArtifactBytes: protocol.MaxArtifactBytes,
			FileSystem:       true,
			SessionFork:      true,
			ProcessTTY:       opened.ProcessTTY,
			ProcessSubscribe: true,
			Jobs:             true,
			Programs:         true,
			GuardConfirm:     true,
		},
		ConfigPath: opened.ConfigPath,
	}, nil
}

func (r *request) openServices(ctx context.Context, p *protocol.InitializeParams) (Services, error) {
	if p.ProcessID != nil && *p.ProcessID <= 0 {
		return Services{}, invalidParams("processId", "processId must be the id of a process, or null")
	}
	if p.Capabilities.PreviewMaxBytes < 0 {
		return Services{}, invalidParams("capabilities.previewMaxBytes", "capabilities.previewMaxBytes must not be negative")
	}
	for name, path := range map[string]string{
		"configPath": p.Options.ConfigPath, "stateDir": p.Options.StateDir, "dataDir": p.Options.DataDir,
	} {
		if path != "" && !filepath.IsAbs(path) {
			name = "initializationOptions." + name
			return Services{}, invalidParams(name, "%s must be an absolute path, not %q", name, path)
		}
	}
	opened, err := r.o.Open(ctx, OpenOptions{
		ConfigPath: p.Options.ConfigPath,
		StateDir:   p.Options.StateDir,
		DataDir:    p.Options.DataDir,
		Sink:       sink{r.server},
		Log:        r.log,
	})
	if err != nil {
		return Services{}, fmt.Errorf("the service cannot start: %w", err)
	}
	return opened, nil
}

// shutdown detaches from every environment. Requests that are still being
// worked on are cancelled; each gets its answer when it has stopped.
func (r *request) shutdown(ctx context.Context, _ *protocol.Empty) (any, error) {
	r.mu.Lock()
	for _, other := range r.requests {
		if other != r {
			other.stop(errEnding)
		}
	}
	r.mu.Unlock()
	// An exit that follows at once must not cut it short.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownBudget)
	defer cancel()
	if err := r.shutdownSessions(ctx); err != nil {
		return nil, tool.Errorf(tool.Internal, "not everything was shut down in order: %w", err).
			WithHint("exit may follow all the same; environments end at their idle limit")
	}
	return nil, nil
}

// exit ends the service. Nothing is read behind it, so that what was asked
// before it can still be answered.
func (s *server) exit() {
	defer func() { <-s.written }()
	s.mu.Lock()
	clean := s.phase == shutDown
	s.mu.Unlock()
	if clean {
		s.end(ExitOK, nil)
	} else {
		s.end(ExitUnclean, fmt.Errorf("the client sent exit without shutdown"))
	}
}

func (s *server) notifyCancel(raw []byte) error {
	params, _, err := paramsDecoder[protocol.CancelParams]()(raw)
	if err != nil {
		return err
	}
	id, err := requestID(params.ID)
	if err != nil {
		return err
	}
	s.cancelRequest(id)
	return nil
}

// requestID is a request's id as it stands in a parameter.
func requestID(t protocol.Token) (jsonrpc2.ID, error) {
	if number, err := strconv.ParseInt(string(t), 10, 64); err == nil {
		return jsonrpc2.NewNumberID(number), nil
	}
	var text string
	if err := json.Unmarshal([]byte(t), &text); err != nil || t == "null" {
		return jsonrpc2.ID{}, invalidParams("id", "id must be a string or an integer")
	}
	return jsonrpc2.NewStringID(text), nil
}

func (s *server) setTrace(raw []byte) error {
	params, _, err := paramsDecoder[protocol.SetTraceParams]()(raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.trace = params.Value
	s.mu.Unlock()
	return nil
}

// traceAnswer tells a client that traces how a request went.
func (r *request) traceAnswer(err error) {
	r.mu.Lock()
	trace := r.trace
	r.mu.Unlock()
	if trace == protocol.TraceOff {
		return
	}
	line := protocol.LogTraceParams{
		Message: fmt.Sprintf("%s (%v) took %v", r.name, r.id, time.Since(r.begun).Round(10*time.Microsecond)),
	}
	if err != nil {
		line.Message += " and failed"
		if trace == protocol.TraceVerbose {
			line.Verbose = err.Error()
		}
	}
	r.notifyDroppable(protocol.MethodLogTrace, line)
}

// watchClient ends the connection when the client's process has died.
func (s *server) watchClient(pid int) {
	s.work.Go(func() {
		if err := waitForExit(s.ctx, pid); err != nil {
			if s.ctx.Err() == nil {
				s.log.Warn("the client's process cannot be watched", slog.Int("pid", pid), slog.Any("error", err))
			}
			return
		}
		s.end(ExitUnclean, fmt.Errorf("the client's process %d has ended", pid))
	})
}
