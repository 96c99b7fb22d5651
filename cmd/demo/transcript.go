package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// width is how much of a message is printed, in bytes.
const width = 150

// backlog is how many notifications may wait to be looked for. The play makes a
// dozen.
const backlog = 256

// transcript prints what goes over the line and remembers what was pushed.
type transcript struct {
	mu        sync.Mutex
	out       io.Writer
	processes chan protocol.ProcessEventParams
	artifacts chan protocol.ArtifactPublished
}

func newTranscript(out io.Writer) *transcript {
	return &transcript{
		out:       out,
		processes: make(chan protocol.ProcessEventParams, backlog),
		artifacts: make(chan protocol.ArtifactPublished, backlog),
	}
}

// options make the client print notifications too.
func (t *transcript) options() client.Options {
	return client.Options{
		ProcessEvent: func(p protocol.ProcessEventParams) {
			t.message("  * ", protocol.MethodProcessEvent, p)
			t.processes <- p
		},
		ArtifactPublished: func(p protocol.ArtifactPublished) {
			t.message("  * ", protocol.MethodArtifactPublished, p)
			t.artifacts <- p
		},
	}
}

func (t *transcript) chapter(title string) { t.print("\n%s\n", title) }

func (t *transcript) sent(method string, params any) { t.message("→ ", method, params) }

func (t *transcript) received(result json.RawMessage) { t.message("← ", "", result) }

func (t *transcript) message(prefix, method string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(err.Error())
	}
	text := tool.Clip(string(raw), width)
	if method != "" {
		method += " "
	}
	t.print("%s%s%s\n", prefix, method, text)
}

func (t *transcript) print(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// closed waits for the news that the process's last output is in.
func (t *transcript) closed(ctx context.Context, process string) error {
	for {
		select {
		case p := <-t.processes:
			if p.Process.ID == process && p.Type == protocol.ProcessEventClosed {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("no news of the process's end: %w", ctx.Err())
		}
	}
}

// artifact waits for the news of an artifact and returns its id.
func (t *transcript) artifact(ctx context.Context) (string, error) {
	select {
	case p := <-t.artifacts:
		return p.Artifact.ID, nil
	case <-ctx.Done():
		return "", fmt.Errorf("no news of the artifact: %w", ctx.Err())
	}
}
