package meter

// Limits of what is accepted. They bound memory and time of the rewriting, which is
// linear in the module's size; programs that compilers make stay far below.
const (
	// DefaultMaxSize is the largest module, in bytes: four times a large Go program.
	DefaultMaxSize = 128 << 20
	// MaxGrowth is how many times larger an instrumented module may be. Real ones
	// grow by a third; one that is nothing but branches grows by seven.
	MaxGrowth = 16
	// DefaultMaxTableElements is 8 MiB of references. The table of a large program
	// has an element for every function whose address is taken.
	DefaultMaxTableElements = 1 << 20
)
