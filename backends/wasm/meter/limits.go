package meter

// Limits of what is accepted. They bound the memory and time of rewriting, which are
// linear in the module's size, and of an engine that reads the module afterwards.
// What compilers make stays far below.
const (
	// DefaultMaxSize is the largest module, in bytes: 30 times a small Go program.
	DefaultMaxSize = 64 << 20
	// MaxGrowth and MaxGrowthBytes bound what comes out: so many times what went in,
	// and so many bytes. Programs grow by a quarter; what is nothing but empty loops
	// would grow by 6.
	MaxGrowth      = 4
	MaxGrowthBytes = 1 << 20
	// DefaultMaxTableElements is 8 MiB of references. The table of a large program
	// has one element for every function whose address is taken.
	DefaultMaxTableElements = 1 << 20

	// maxBodySize bounds one function, in bytes; browsers have this limit too.
	maxBodySize = 7_654_321
	// maxNesting bounds the depth of blocks. Go nests one for every place in a
	// function where a goroutine may continue.
	maxNesting = 1 << 17
	// maxLocals bounds the parameters and locals of one function, as browsers do;
	// maxAllLocals those of a module, which a few bytes of each function declare and
	// an engine lays out one by one.
	maxLocals    = 50_000
	maxAllLocals = 1 << 23
	// maxParams bounds the parameters, and the results, of one type, as browsers do:
	// one branch moves that many values for one unit of fuel.
	maxParams = 1000
	// maxTypes and maxFunctions are those of browsers too.
	maxTypes     = 1_000_000
	maxFunctions = 1_000_000
	// maxTables bounds the tables of a module.
	maxTables = 1000
)
