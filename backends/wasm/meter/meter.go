// Package meter rewrites WebAssembly modules so that they count the instructions
// they execute and stop when their fuel is spent.
//
// It is pure: bytes in, bytes out. It knows no engine, no file and no clock, and
// nothing that needs one may enter.
//
// # What is counted
//
// Every instruction costs one unit, whatever it does; else and end belong to the
// instruction that they close and cost nothing. Instructions that work on ranges
// cost their size as well: one unit for every [BytesPerUnit] bytes of memory.fill,
// memory.copy and memory.init, one for every element of table.fill, table.copy and
// table.init, and, only where they succeed, one for every [BytesPerUnit] bytes of
// memory.grow and every element of table.grow.
//
// Fuel is taken at the head of a segment: code whose instructions all execute once
// it was begun, as long as nothing traps or runs forever. So a run that ends by
// itself has spent exactly what it executed. A run that traps has paid for the
// rest of its segment as well.
//
// Whether there is enough is looked at where a function begins, at the head of every
// loop's round, where code goes on after a call, and at the border: before the host
// is called and before an exported function returns to it. In between at most one
// function's code runs once through, and that may be owed for a moment. So a run
// ends by itself exactly if it had the fuel, and a run that had not makes no call of
// the host, and returns no result, that it has not paid. It stops in front of what
// it cannot pay, and what is left then is the remainder. All of this is a function of
// the module, its inputs and the fuel alone.
//
// # How a host drives it
//
// The instrumented module exports one mutable i64 global, the fuel that its
// instance holds, and imports one function:
//
//	caisson.refuel (fuel i64, need i64) -> i64
//
// The instance begins with no fuel, so neither the module's bytes nor an engine's
// cache depends on a budget, and a start function is metered like all else. Whenever
// the instance holds less than what comes next it calls refuel with what it holds
// and what it needs. The host answers with the new amount, at least need, or ends the
// run by a panic. This is where cancellation, time limits and the host's garbage
// collector get their turn; the loops between cost nothing for them. [Tank] is the
// arithmetic of the host's side.
package meter

// What the instrumented module imports and exports. No module that comes in may use
// them.
const (
	// ImportModule and ImportRefuel name the imported function, of type
	// (fuel i64, need i64) -> i64. Need is at least 0, fuel is less than need.
	ImportModule = "caisson"
	ImportRefuel = "refuel"
	// ExportFuel names the exported mutable i64 global with the fuel that the
	// instance holds; below 0 is what it owes, after a trap only. The host may read
	// it whenever no code of the instance runs, which includes functions of the host
	// that the instance called, and write it to charge for its own work.
	ExportFuel = "caisson:fuel"
)

// BytesPerUnit is how many bytes a range instruction works on for one unit of
// fuel; a memory page is 8192 units.
const BytesPerUnit = 8

// Options bound what is accepted. The zero value is what the defaults say.
type Options struct {
	// MaxSize bounds the module that comes in, in bytes; 0 means [DefaultMaxSize].
	// What comes out is at most [MaxGrowth] times as large, and [MaxGrowthBytes].
	MaxSize int
	// MaxTableElements bounds all tables of the module together, in elements; 0
	// means [DefaultMaxTableElements]. A module whose tables begin larger is
	// refused, and table.grow fails beyond: tables are memory that an engine's
	// page limit does not see.
	MaxTableElements uint32
}

// Module is an instrumented module.
type Module struct {
	// Bytes is the module in the binary format.
	Bytes []byte
	// Charges counts the places where fuel is taken, Functions the functions that
	// were instrumented; both are for reports.
	Charges, Functions int
}

// Instrument rewrites a module of WebAssembly Core 2.0 (SIMD included, relaxed SIMD
// not) so that it spends fuel as the package says, and is in every other respect
// the same: what it exports and imports, computes, traps at and writes. Only its
// stack frames are a little larger, and names may differ in stack traces.
//
// The engine must find the original valid as well; until it has, what comes out must
// not run. Instrument checks the format, indices, lengths, nesting and opcodes, but no
// types. It bounds what an engine allocates for numbers that a few bytes state,
// such as a function's locals, so it is best called first.
//
// The custom section "name" is kept, renumbered, as far as it names the module and
// its functions; all other custom sections are dropped, since they speak of offsets
// that have moved.
//
// Every error is an [*Error]. The module is not changed, and is not retained.
func Instrument(module []byte, o Options) (Module, error) {
	return instrument(module, o)
}
