package meter

import (
	"testing"
	"time"
)

// BenchmarkCost runs the same work plain and instrumented, and with the engine's own
// checks of its context, in turns, and reports how many times as long as the quickest
// plain run the quickest of the others took.
func BenchmarkCost(b *testing.B) {
	module, err := guest()
	if err != nil {
		b.Fatal(err)
	}
	plain := newCommand(b, compiled(), module)
	metered := newCommand(b, compiled(), instrumented(b, module))
	checked := newCommand(b, compiled().WithCloseOnContextDone(true), module)
	for _, task := range []string{"spin", "sieve", "fib"} {
		b.Run("go/"+task, func(b *testing.B) {
			compare(b,
				func() { plain.run(b, MaxFuel, "", task) },
				func() { metered.run(b, MaxFuel, "", task) },
				func() { checked.run(b, MaxFuel, "", task) })
		})
	}
	for name, k := range kernels() {
		b.Run("assembled/"+name, func(b *testing.B) {
			run := func(c command, module []byte) func() {
				code, err := c.CompileModule(b.Context(), module)
				if err != nil {
					b.Fatal(err)
				}
				return func() { c.runCode(b, code, MaxFuel, 0, k.arg) }
			}
			compare(b, run(plain, k.module), run(metered, instrumented(b, k.module)), run(checked, k.module))
		})
	}
}

// compare runs what is plain, metered and checked in turns.
func compare(b *testing.B, runs ...func()) {
	least := make([]time.Duration, len(runs))
	for b.Loop() {
		for i, run := range runs {
			began := time.Now()
			run()
			if took := time.Since(began); least[i] == 0 || took < least[i] {
				least[i] = took
			}
		}
	}
	floor := least[0].Seconds()
	b.ReportMetric(floor*1000, "ms-plain")
	b.ReportMetric(least[1].Seconds()/floor, "×metered")
	b.ReportMetric(least[2].Seconds()/floor, "×checked")
}

type kernel struct {
	module []byte
	arg    uint64
}

// kernels are the same three without a compiler's dispatch around them, and a loop
// that does nothing but count, where metering costs most.
func kernels() map[string]kernel {
	count := func(round ...[]byte) []byte {
		return loop(void, cat(round...), get(0), i32(1), op(i32Sub), tee(0), brIf(0))
	}
	shift := func(by int64, code byte) []byte {
		return cat(get(1), get(1), i64(by), op(code), op(i64Xor), set(1))
	}
	spin := one("i:I", "I", i64(88172645463325252), set(1), count(shift(13, opI64Shl), shift(7, opI64ShrU), shift(17, opI64Shl)), get(1))

	sieve := assemble()
	sieve.memory(16, 16)
	// 0 is the end, 1 the number, 2 its multiple, 3 how many.
	sieve.function("run", "i:i", "iii", i32(2), set(1), loop(void,
		get(1), op(i32Load8U, 0, 0), op(opI32Eqz), when(void,
			get(3), i32(1), op(i32Add), set(3),
			get(1), get(1), op(i32Mul), tee(2), get(0), op(i32LtU), when(void, loop(void,
				get(2), i32(1), op(i32Store8, 0, 0),
				get(2), get(1), op(i32Add), tee(2), get(0), op(i32LtU), brIf(0)))),
		get(1), i32(1), op(i32Add), tee(1), i32(1000), op(i32LtU), brIf(0)), get(3))

	self := indexed(opCall, 0)
	fib := one("i:i", "", get(0), i32(2), op(i32LtU), when(void, get(0), op(opReturn)),
		get(0), i32(1), op(i32Sub), self, get(0), i32(2), op(i32Sub), self, op(i32Add))
	return map[string]kernel{
		"spin": {spin, 20_000_000}, "sieve": {sieve.bytes(), 1_000_000}, "fib": {fib, 32},
		"count": {one("i", "", count()), 50_000_000},
	}
}

func BenchmarkInstrument(b *testing.B) {
	module, err := guest()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(module)))
	for b.Loop() {
		m, err := Instrument(module, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(100*float64(len(m.Bytes))/float64(len(module))-100, "%growth")
	}
}
