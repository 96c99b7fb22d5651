package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/wasm"
)

const wasmWork = "wasm tool call, warm"

// wasmMargin is what a call may take longer than an instance and its _start.
const wasmMargin = 300 * time.Microsecond

// guestSource is a Go program that writes its input to its output, from the
// repository's root.
const guestSource = "./backends/wasm/testdata/guest"

// wasmRows compares a call of a Go program, on its way to the engine's process and
// back, metered, with the bare library in this process.
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
	code, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	bare, end, err := bareGuest(ctx, code)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	program, err := filepath.Abs(b.caisson)
	if err != nil {
		return err
	}
	p, err := profile.Parse("pure", []byte(`{"backend":"wasm"}`), profile.Defaults{})
	if err != nil {
		return err
	}
	env, err := wasm.New(wasm.Options{Executable: program}).
		Open(ctx, backends.Binding{Session: "bench", Profile: p, StateDir: dir}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Detach(context.WithoutCancel(ctx))) }()
	sum := sha256.Sum256(code)
	request := backends.ModuleRequest{
		ID: "bench", Path: module, SHA256: hex.EncodeToString(sum[:]), Args: []string{"echo"}, Stdin: []byte(guestInput),
	}
	ours := func() error {
		_, err := env.(backends.ModuleRunner).RunModule(ctx, request)
		return err
	}
	c, err := versus(ctx, rounds, ours, bare)
	if err != nil {
		return err
	}
	b.add(wasmWork, row{
		ours: short(c.ours), other: "instantiate and _start " + short(c.other),
		ratio:  fmt.Sprintf("%+.2f ms", float64(c.ours-c.other)/float64(time.Millisecond)),
		target: fmt.Sprintf("≤ +%.1f ms", float64(wasmMargin)/float64(time.Millisecond)),
		met:    c.ours-c.other <= wasmMargin,
	})
	return nil
}

const guestInput = `{"action":"list"}`

// bareGuest returns a function that runs the module in this process.
func bareGuest(ctx context.Context, module []byte) (run, end func() error, err error) {
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
		config := wazero.NewModuleConfig().WithName("").WithArgs("guest", "echo").
			WithStdin(bytes.NewReader([]byte(guestInput))).WithStdout(&out)
		instance, err := r.InstantiateModule(ctx, code, config)
		if err != nil {
			return err
		}
		if out.String() != guestInput {
			return fmt.Errorf("the guest wrote %q", out.String())
		}
		return instance.Close(ctx)
	}, func() error { return r.Close(ctx) }, nil
}
