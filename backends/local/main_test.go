package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// The test binary is the worker too, and a service that is to be killed.
func TestMain(m *testing.M) {
	if handled, code := supervise.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == "service" {
		if err := playService(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Under the race detector every worker and starter would sleep for a second
	// at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long tests wait for what should come at once.
const patience = 30 * time.Second

const counter = `i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done`

func secrets() backends.Secrets {
	return backends.Secrets{
		Token:       strings.Repeat("0123456789abcdef", 4),
		Environment: map[string]string{"HIDDEN": "s3cret-value"},
	}
}

// told is what a service says of the process that it started.
type told struct {
	Process string
	PID     int
	Offset  int64
}

// playService opens the binding in a file, starts a process that counts, says
// how far it has read it, and waits to be killed.
func playService(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var at backends.Binding
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	at.Secrets = secrets()
	ctx := context.Background()
	env, err := New(Options{}).Open(ctx, at, nil)
	if err != nil {
		return err
	}
	p, err := env.Processes().Start(ctx, tool.StartRequest{OperationID: "count", Command: counter, Actor: at.Session})
	if err != nil {
		return err
	}
	from := int64(0)
	read, err := env.Processes().Read(ctx, p.ID, tool.ReadOptions{OffsetBytes: &from, Wait: patience})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(told{p.ID, p.PID, read.EndOffset}); err != nil {
		return err
	}
	select {}
}
