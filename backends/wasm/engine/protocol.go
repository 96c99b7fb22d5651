package engine

// Command is the subcommand that starts an engine.
const Command = "wasm-engine"

// Methods of the engine beside initialize.
const (
	// MethodSetup tells the engine what all runs share: [Setup] to [Ready]. It is the
	// first request.
	MethodSetup = "wasm/setup"
	// MethodRun runs a module: [Run], with standard input as the body, to [Outcome],
	// with standard output and standard error as the body.
	MethodRun = "wasm/run"
)

// Setup is what all runs of one engine share.
type Setup struct {
	// CacheDir keeps compiled modules; empty: nothing is kept.
	CacheDir string `json:"cache_dir,omitempty"`
	// Mounts are the directories of every run.
	Mounts []Mount `json:"mounts,omitempty"`
	// MemoryPages is the most that any run will ask for.
	MemoryPages uint32 `json:"memory_pages"`
	// MaxCompile is how long compiling a module may take, in nanoseconds; 0 is no
	// limit.
	MaxCompile int64 `json:"max_compile,omitempty"`
	// Environment are the variables of every run.
	Environment map[string]string `json:"environment,omitempty"`
}

// Ready is the answer to a Setup.
type Ready struct {
	// CacheProblem is why nothing is kept in the cache, in words.
	CacheProblem string `json:"cache_problem,omitempty"`
}

// Mount is a directory of the host and where guests see it.
type Mount struct {
	Host     string `json:"host"`
	Guest    string `json:"guest"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// Below is a directory below Host that is shown instead, a relative path with
	// slashes; links on the way lead nowhere else than below Host.
	Below string `json:"below,omitempty"`
	// File says which directory it must be, as [FileID] does; empty: whichever is
	// there. Somebody may have moved a link into the path meanwhile.
	File string `json:"file,omitempty"`
}

// Run is one run of a module.
type Run struct {
	// Path is the module's file, and SHA256 what it must hash to, in hex.
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	// Args begin with the program's name.
	Args        []string          `json:"args"`
	Environment map[string]string `json:"environment,omitempty"`
	// Mounts are directories beside those of the Setup; one of them may take the
	// place of another with the same Guest. They share files that are the same.
	Mounts []Mount `json:"mounts,omitempty"`
	// ReadOnly makes the directories of the Setup read-only.
	ReadOnly      bool   `json:"read_only,omitempty"`
	Fuel          uint64 `json:"fuel"`
	MemoryPages   uint32 `json:"memory_pages"`
	Timeout       int64  `json:"timeout"` // nanoseconds; 0 is none
	Deterministic bool   `json:"deterministic,omitempty"`
	// MaxOutput bounds standard output and standard error together, in bytes. More
	// ends the run, or with Truncate is dropped.
	MaxOutput int64 `json:"max_output"`
	Truncate  bool  `json:"truncate,omitempty"`
}

// Ending says what ended a run.
type Ending string

// The endings.
const (
	Exited        Ending = "exited" // by itself, whatever the code
	OutOfFuel     Ending = "outOfFuel"
	OutOfMemory   Ending = "outOfMemory"
	StackOverflow Ending = "stackOverflow"
	Trapped       Ending = "trap"
	OutOfTime     Ending = "time"
	OutOfOutput   Ending = "output"
	// Uncompiled is a module that took too long to compile: it did not run.
	Uncompiled Ending = "uncompiled"
)

// Outcome is how a run ended. Its body holds Stdout bytes of standard output and
// then Stderr bytes of standard error.
type Outcome struct {
	Ending Ending `json:"ending"`
	// ExitCode is that of a guest that ended by itself, also of one that ended
	// because it had no more memory.
	ExitCode uint32 `json:"exit_code"`
	// Replace says that the engine is to be replaced: it goes on compiling the module.
	Replace bool `json:"replace,omitempty"`
	// Detail says more about an ending, for a person.
	Detail        string `json:"detail,omitempty"`
	FuelRemaining uint64 `json:"fuel_remaining"`
	Stdout        int    `json:"stdout"`
	Stderr        int    `json:"stderr"`
	Truncated     bool   `json:"truncated,omitempty"`
	Duration      int64  `json:"duration"` // nanoseconds, compiling and waiting aside
}
