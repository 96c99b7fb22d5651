package meter

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// guest is the program of testdata/guest, built once.
var guest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "caisson-meter-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	build := exec.Command("go", "build", "-o", out, "./testdata/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return os.ReadFile(out)
})

// command is a compiled WASI program.
type command struct {
	*host
	code wazero.CompiledModule
}

func newCommand(t testing.TB, config wazero.RuntimeConfig, module []byte) command {
	t.Helper()
	h := newHost(t, config)
	wasi_snapshot_preview1.MustInstantiate(t.Context(), h)
	code, err := h.CompileModule(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	return command{host: h, code: code}
}

// ending is what a command did.
type ending struct {
	out, errs string
	exit      string
	spent     uint64
}

// run runs the command with the wall clock and random numbers of wazero's defaults,
// which are fixed.
func (c command) run(t testing.TB, fuel uint64, stdin string, args ...string) ending {
	t.Helper()
	c.tank = NewTank(fuel, 0)
	var out, errs bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs(append([]string{"guest"}, args...)...).
		WithStdin(strings.NewReader(stdin)).WithStdout(&out).WithStderr(&errs)
	m, err := c.InstantiateModule(t.Context(), c.code, config)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	_, err = m.ExportedFunction("_start").Call(t.Context())
	r := ending{out: out.String(), errs: errs.String(), exit: "0"}
	var exit *sys.ExitError
	switch {
	case errors.As(err, &exit):
		r.exit = fmt.Sprint(exit.ExitCode())
	case err != nil:
		r.exit, _, _ = strings.Cut(err.Error(), "\n")
	}
	if g := m.ExportedGlobal(ExportFuel); g != nil {
		r.spent = fuel - c.tank.Remaining(g.Get())
	}
	return r
}

// TestGuest runs a Go program as it is and instrumented: it writes and returns the
// same, and costs the same each time.
func TestGuest(t *testing.T) {
	module, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	config := compiled()
	if raced {
		config = interpreted()
	}
	plain := newCommand(t, config, module)
	metered := newCommand(t, config, instrumented(t, module))
	for _, c := range []struct {
		name, stdin string
		args        []string
		exit        string
	}{
		{name: "hello", args: []string{"hello", "wörld"}},
		{name: "echo", stdin: "one\ntwo\n\nfour", args: []string{"echo"}},
		{name: "json", args: []string{"json"}},
		{name: "goroutines", args: []string{"goroutines"}},
		{name: "gc", args: []string{"gc"}},
		{name: "panic", args: []string{"panic"}, exit: "2"},
		{name: "maps", args: []string{"maps"}},
		{name: "sha256", args: []string{"sha256"}},
		{name: "sort", args: []string{"sort"}},
		{name: "exit", args: []string{"exit"}, exit: "7"},
		{name: "deadlock", args: []string{"deadlock"}, exit: "2"},
		{name: "out of memory", args: []string{"memory"}, exit: "2"},
	} {
		if raced && c.name != "hello" && c.name != "goroutines" && c.name != "panic" {
			continue
		}
		want := plain.run(t, plenty, c.stdin, c.args...)
		got := metered.run(t, plenty, c.stdin, c.args...)
		again := metered.run(t, got.spent, c.stdin, c.args...)
		if c.exit == "" {
			c.exit = "0"
		}
		if want.exit != c.exit || want.out == "" && want.errs == "" && c.name != "exit" {
			t.Errorf("%s: plain, it ended with %s and wrote %q", c.name, want.exit, want.out+want.errs)
		}
		if got.spent == 0 || again != got {
			t.Errorf("%s: with the fuel that it took it ended with %s, %d; before with %s, %d", c.name, again.exit, again.spent, got.exit, got.spent)
		}
		if want.spent = got.spent; want != got {
			t.Errorf("%s: instrumented, it is\n%+v\nand plain\n%+v", c.name, got, want)
		}
	}
	const fuel = 10_000_000
	first := metered.run(t, fuel, "", "endless")
	if !strings.Contains(first.exit, ErrOutOfFuel.Error()) {
		t.Errorf("endless: it ended with %s", first.exit)
	}
	if again := metered.run(t, fuel, "", "endless"); again != first {
		t.Errorf("endless: the second time it is %+v, the first %+v", again, first)
	}
}
