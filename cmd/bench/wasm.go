package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-dev/caisson/backends/plugin"
)

// The calls of an agent are apart, by its thinking; those of code that it writes
// follow each other.
const (
	wasmWork    = "wasm tool call, warm"
	wasmAtOnce  = "wasm tool calls, one behind the other"
	wasmPause   = 10 * time.Millisecond
	wasmMargin  = 300 * time.Microsecond // what a call may take longer than an instance and its _start
	guestName   = "word_count"
	guestSource = "./docs/examples/wordcount" // from the repository's root
)

// wasmRows compares a call of a registered tool, a Go program, through the service and
// the engine's process, metered, with the bare library in this process, where it is
// compiled as it is.
func wasmRows(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "caisson-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	module := filepath.Join(dir, "guest.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", module, guestSource)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the guest: %w: %s", err, out)
	}
	register := exec.CommandContext(ctx, b.caisson, "tools", "register", module,
		"--data-dir", filepath.Join(dir, "data"), "--state-dir", filepath.Join(dir, "state"))
	if out, err := register.CombinedOutput(); err != nil {
		return fmt.Errorf("register the guest: %w: %s", err, out)
	}
	code, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	arguments := map[string]any{"text": "one two three"}
	bare, end, err := bareGuest(ctx, code, params(arguments))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	s, err := b.startIn(ctx, dir, `{"execution_environments": {"profiles": {"pure": {"backend": "wasm"}}}}`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	session, err := s.open("pure")
	if err != nil {
		return err
	}
	ours := s.tool(session, guestName, arguments)
	atOnce, err := versus(ctx, rounds, ours, bare)
	if err != nil {
		return err
	}
	apart, err := versusOf(ctx, rounds, paused(ours), paused(bare))
	if err != nil {
		return err
	}
	for work, c := range map[string]comparison{wasmWork: apart, wasmAtOnce: atOnce} {
		b.add(work, row{
			ours: short(c.ours), other: "instantiate and _start " + short(c.other),
			ratio:  fmt.Sprintf("%+.2f ms", float64(c.ours-c.other)/float64(time.Millisecond)),
			target: fmt.Sprintf("≤ +%.1f ms", float64(wasmMargin)/float64(time.Millisecond)),
			met:    c.ours-c.other <= wasmMargin,
		})
	}
	return s.delete(session)
}

// paused measures f after a pause.
func paused(f func() error) func() (time.Duration, error) {
	clocked := clocked(f)
	return func() (time.Duration, error) {
		time.Sleep(wasmPause)
		return clocked()
	}
}

// bareGuest returns a function that runs the module in this process, asked as a tool
// is.
func bareGuest(ctx context.Context, module []byte, arguments json.RawMessage) (run, end func() error, err error) {
	request, err := plugin.RunRequest(guestName, arguments)
	if err != nil {
		return nil, nil, err
	}
	r := wazero.NewRuntime(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, nil, errors.Join(err, r.Close(ctx))
	}
	code, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close(ctx))
	}
	return func() error {
		var out bytes.Buffer
		config := wazero.NewModuleConfig().WithName("").WithArgs("guest").
			WithStdin(bytes.NewReader(request)).WithStdout(&out)
		instance, err := r.InstantiateModule(ctx, code, config)
		if err != nil {
			return err
		}
		if !bytes.Contains(out.Bytes(), []byte(`"ok":true`)) {
			return fmt.Errorf("the guest wrote %q", out.String())
		}
		return instance.Close(ctx)
	}, func() error { return r.Close(ctx) }, nil
}
