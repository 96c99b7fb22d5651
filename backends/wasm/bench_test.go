package wasm

import (
	"bytes"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-dev/caisson/backends"
)

// BenchmarkCall is a warm call of a Go program, and of the smallest module.
func BenchmarkCall(b *testing.B) {
	e := open(b, binding(b, pure(b, `,"max_fuel":1000000000000`)))
	small := written(b, smallest)
	goProgram := request(b, "echo")
	goProgram.Stdin = []byte(`{"action":"list"}`)
	for _, r := range []backends.ModuleRequest{small, goProgram} { // so that they are compiled
		if _, err := e.RunModule(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("smallest", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.RunModule(b.Context(), small); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Go", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.RunModule(b.Context(), goProgram); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBare is what the engine alone takes for the same: an instance and its
// _start, in this process, without metering.
func BenchmarkBare(b *testing.B) {
	ctx := b.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	program, err := os.ReadFile(guest(b))
	if err != nil {
		b.Fatal(err)
	}
	for name, module := range map[string][]byte{"smallest": smallest, "Go": program} {
		code, err := r.CompileModule(ctx, module)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var out bytes.Buffer
				config := wazero.NewModuleConfig().WithName("").WithArgs("guest", "echo").
					WithStdin(bytes.NewReader([]byte(`{"action":"list"}`))).WithStdout(&out)
				instance, err := r.InstantiateModule(ctx, code, config)
				if err != nil {
					b.Fatal(err)
				}
				instance.Close(ctx)
			}
		})
	}
}
