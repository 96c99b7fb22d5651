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
// Fuel is taken where a stretch of code begins whose instructions all execute
// once it was begun, if nothing traps. A run that ends by itself has therefore
// spent exactly what it executed, and it ends by itself exactly if it had that
// much. A run that traps has paid for the rest of its stretch as well. A stretch
// that cannot be paid does not begin, and takes nothing: what was left before it is
// the remainder. All of this is a function of the module, its inputs and the
// fuel alone.
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
	// (fuel i64, need i64) -> i64. Both are unsigned.
	ImportModule = "caisson"
	ImportRefuel = "refuel"
	// ExportFuel names the exported mutable i64 global with the fuel that the
	// instance holds, unsigned. The host may read it whenever no code of the
	// instance runs, and write it to charge for its own work.
	ExportFuel = "caisson:fuel"
)

// BytesPerUnit is how many bytes a range instruction works on for one unit of
// fuel; a memory page is 8192 units.
const BytesPerUnit = 8

// Options bound what is accepted. The zero value is what the defaults say.
type Options struct {
	// MaxSize bounds the module that comes in, in bytes; 0 means [DefaultMaxSize].
	// What comes out is at most [MaxGrowth] times as large, and 64 KiB.
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
// the same.
//
// The caller must have validated the original with the engine before. Instrument
// does not check types: what it makes of an invalid module may be valid and do
// anything but spend less fuel than it should. Indices, lengths, nesting and opcodes
// it does check.
//
// The custom section "name" is kept, renumbered, as far as it names the module and
// its functions; all other custom sections are dropped, since they speak of offsets
// that have moved.
//
// Every error is an [*Error]. The module is not retained or changed.
func Instrument(module []byte, o Options) (Module, error) {
	return instrument(module, o)
}
