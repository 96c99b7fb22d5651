package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/directory"
	"github.com/caisson-dev/caisson/backends/wasm/meter"
)

// guest is one run of a module, from its fresh instance to its end. It has one
// thread. Its instance may be made before anybody knows what it is to do.
type guest struct {
	ctx      context.Context
	began    time.Time
	tank     *meter.Tank
	fuel     api.MutableGlobal // nil before the first instruction
	memory   memory
	table    directory.Table
	stdin    bytes.Reader
	output   *output
	instance api.Module // nil before it is made
	// arguments and variables are what it is given of them, in bytes, with the
	// pointers to them.
	arguments, variables uint64
	// gave is the longest path that it gives to the host function that it calls, in
	// bytes.
	gave uint64
}

type guestKey struct{}

// guestOf is the guest on whose behalf the engine calls the host.
func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

// look ends the guest, by a panic that the engine passes on as its error, when its
// caller or its time is gone.
func (g *guest) look(m api.Module) {
	if g.fuel == nil {
		g.fuel, _ = m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
	}
	if g.ctx.Err() != nil {
		panic(errStopped)
	}
}

// spend takes what the host does for the guest, and ends it where it has not as
// much.
func (g *guest) spend(units uint64) {
	if g.fuel == nil {
		return // a module that was not instrumented, which none of ours is
	}
	fuel, err := g.tank.Spend(g.fuel.Get(), units)
	if err != nil {
		panic(err)
	}
	g.fuel.Set(fuel)
}

// mounted is an open directory and where the guest sees it.
type mounted struct {
	at       string
	root     *os.Root
	readOnly bool
	// same is the number of an earlier one that is the same directory, else -1.
	same int
}

// newGuest is a guest without an instance, of whom nothing is known yet but how it
// sees the world.
func newGuest(o Run) *guest {
	return &guest{
		ctx:    context.Background(),
		tank:   meter.NewTank(0, 0), // so that nothing of it runs before it is told
		memory: memory{limit: uint64(o.MemoryPages) * PageSize},
		table:  directory.Table{Max: maxOpenFiles},
		output: newOutput(0, false),
	}
}

// run runs the guest to its end, and returns its output. The error is the context's,
// unless the guest's time is what ended. Its instance is made where there is none.
func (g *guest) run(ctx context.Context, o Run, stdin []byte, instantiate func(context.Context, *guest) error) (out Outcome, body []byte, err error) {
	defer g.free()
	caller := ctx
	g.began = time.Now()
	if o.Timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, g.began.Add(time.Duration(o.Timeout)))
		defer cancel()
	}
	g.ctx = ctx
	g.tank = meter.NewTank(o.Fuel, 0)
	g.stdin.Reset(stdin)
	g.output.limit, g.output.truncate = o.MaxOutput, o.Truncate
	ctx = context.WithValue(ctx, guestKey{}, g)
	var failed error
	if g.instance == nil {
		failed = instantiate(ctx, g)
	}
	if failed == nil {
		_, failed = g.instance.ExportedFunction(entry).Call(ctx)
		// What files fail with at their end would be for the guest, which is over.
		_ = g.instance.Close(ctx)
	}
	if err := caller.Err(); err != nil && errors.Is(failed, errStopped) {
		return Outcome{}, nil, err
	}
	out = g.outcome(failed)
	out.FuelRemaining = g.remaining()
	stdout, stderr, truncated := g.output.finish()
	out.Stdout, out.Stderr, out.Truncated = len(stdout), len(stderr), truncated
	out.Duration = int64(time.Since(g.began))
	if len(stderr) == 0 {
		return out, stdout, nil
	}
	return out, slices.Concat(stdout, stderr), nil
}

func (g *guest) remaining() uint64 {
	if g.fuel == nil {
		return g.tank.Remaining(0)
	}
	return g.tank.Remaining(g.fuel.Get())
}

// instantiate makes the instance. Where that fails the guest is over.
func (g *guest) instantiate(ctx context.Context, r wazero.Runtime, code wazero.CompiledModule, config wazero.ModuleConfig) (err error) {
	defer func() {
		// Only the making of an instance lets a panic of ours through.
		if p := recover(); p != nil {
			if err, _ = p.(error); !errors.Is(err, errMemory) {
				panic(p)
			}
		}
	}()
	ctx = context.WithValue(experimental.WithMemoryAllocator(ctx, &g.memory), guestKey{}, g)
	g.instance, err = r.InstantiateModule(ctx, code, config)
	return err
}

// free lets go of a guest that is over, or never began.
func (g *guest) free() {
	if g.instance != nil {
		_ = g.instance.Close(context.Background()) // see run
	}
	g.memory.Free()
}

// config is what the guest sees of the world.
func (g *guest) config(o Run, environment map[string]string, mounts []mounted) wazero.ModuleConfig {
	var c clock = &realClock{g}
	if o.Deterministic {
		c = &fixedClock{}
	}
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions(). // it is called when its fuel can be read
		WithArgs(o.Args...).
		WithStdin(&g.stdin).
		WithStdout(&g.output.out).
		WithStderr(&g.output.errs).
		WithRandSource(random(g, o.Deterministic)).
		WithWalltime(c.walltime, sys.ClockResolution(time.Microsecond)).
		WithNanotime(c.nanotime, sys.ClockResolution(time.Microsecond)).
		WithNanosleep(c.nanosleep).
		WithFSConfig(g.directories(o, mounts))
	merged := map[string]string{}
	for _, from := range []map[string]string{environment, o.Environment} {
		for k, v := range from {
			merged[k] = v
		}
	}
	names := make([]string, 0, len(merged))
	for k := range merged {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		config = config.WithEnv(k, merged[k])
		g.variables += uint64(len(k)+len(merged[k])) + pointerSize
	}
	for _, arg := range o.Args {
		g.arguments += uint64(len(arg)) + pointerSize
	}
	return config
}

// directories mounts the directories, each the same value where it is the same
// directory: the engine moves files between those only.
func (g *guest) directories(o Run, mounts []mounted) wazero.FSConfig {
	config := wazero.NewFSConfig()
	made := make([]*directory.Directory, len(mounts))
	for i, m := range mounts {
		if m.same >= 0 {
			made[i] = made[m.same]
		} else {
			made[i] = directory.New(m.root, directory.Options{
				ReadOnly: m.readOnly, FixedTimes: o.Deterministic, Epoch: Epoch, Table: &g.table,
			})
		}
		config = config.(sysfs.FSConfig).WithSysFSMount(made[i], m.at)
	}
	return config
}

// outcome tells why the guest ended.
func (g *guest) outcome(err error) Outcome {
	var exit *sys.ExitError
	switch {
	case err == nil:
		return Outcome{Ending: Exited}
	case errors.As(err, &exit):
		out := Outcome{Ending: Exited, ExitCode: exit.ExitCode()}
		if out.ExitCode != 0 && g.memory.refused && g.output.errs.saysOutOfMemory() {
			out.Ending, out.Detail = OutOfMemory, fmt.Sprintf("it asked for more memory, and ended with the exit code %d", out.ExitCode)
		}
		return out
	case errors.Is(err, meter.ErrOutOfFuel):
		return Outcome{Ending: OutOfFuel}
	case errors.Is(err, errStopped):
		return Outcome{Ending: OutOfTime}
	case errors.Is(err, errOutput):
		return Outcome{Ending: OutOfOutput}
	case errors.Is(err, errMemory):
		return Outcome{Ending: OutOfMemory, Detail: errMemory.Error()}
	case caused(err, "stack overflow"):
		return Outcome{Ending: StackOverflow}
	case g.memory.refused:
		// A guest that traps some time after it was refused memory most likely did
		// so because of it, and nothing in the protocol of WASI could say so.
		return Outcome{Ending: OutOfMemory, Detail: detail(err)}
	}
	return Outcome{Ending: Trapped, Detail: detail(err)}
}

// saysOutOfMemory recognises what the run-time systems of Go and of Rust say when
// they give up for lack of memory.
func (s *stream) saysOutOfMemory() bool {
	for _, said := range [][]byte{s.head, s.tail} {
		if bytes.Contains(said, []byte("out of memory")) || bytes.Contains(said, []byte("memory allocation of")) {
			return true
		}
	}
	return false
}

// caused reports whether an error with that text is in the chain: the engine's own
// errors cannot be named.
func caused(err error, text string) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if err.Error() == text {
			return true
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return caused(err, text) })
		}
	}
	return false
}

// detail is what the engine says about a trap, without the parts that are about
// itself.
func detail(err error) string {
	text := strings.TrimPrefix(err.Error(), "wasm error: ")
	text = strings.ReplaceAll(text, " (recovered by wazero)", "")
	return brief(text)
}

// brief is a text of some length, of which the beginning says enough.
func brief(text string) string { return tool.Clip(text, maxDetail) }
