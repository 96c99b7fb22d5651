// Package plugins keeps registered WebAssembly tools and the sources of tool
// packs, and checks the arguments of their calls.
//
//	<dir>/blobs/<sha256>          a module, or the source of a pack
//	      listings/<sha256>.json  what the module's own action list answered
//	      names/<name>.json       a registered [Plugin]
//	      lock                    held while one of them is changed
//
// Directories are 0700 and files 0600; files are replaced atomically. Two services
// may share the directory. It runs no module and knows no session: both come from
// whoever asks.
package plugins

import "time"

const (
	// format is the version of the files. A listing of another one is made anew.
	format = 1
	// MaxModule is the longest module, in bytes. Compilers write up to some ten
	// MiB; the engine keeps several times as much.
	MaxModule = 64 << 20
	// maxNames is how many plugins may be registered: each adds its tools to what
	// a model reads.
	maxNames = 256
	// maxRecord bounds what is read of a record, in bytes: a listing holds at most
	// [plugin.MaxList], written with its white space.
	maxRecord = 4 << 20
	// youth is how long a blob that nobody names is kept: somebody may just be
	// registering it, or opening a session with it.
	youth = time.Hour
	// listTimeout is how long a module may take to list its tools.
	listTimeout = 30 * time.Second

	// maxFault is the longest text of a fault, in bytes.
	maxFault = 300
	// maxEffort is how much work the check of one call's arguments may be, in
	// comparisons or the like: about half a second. A schema may ask for more than
	// any machine could do.
	maxEffort = 8_000_000
	// uniqueEffort is what it takes to compare a value with all others of a list, whose
	// names are sorted for it, numberEffort to compare two numbers as fractions, and
	// mostDigits what those with the most digits take beside.
	uniqueEffort = 4
	numberEffort = 6
	mostDigits   = 20
	// bytesEffort is how many bytes of messages are as much work as a comparison.
	bytesEffort = 32
	// saysLittle is what a message has beside texts, and saysNumbers what it has where
	// a number has limits: both are written with up to 350 digits.
	saysLittle  = 100
	saysNumbers = 1 << 10
	// valueEffort is how much of it a value of the arguments takes only to be there: some
	// dozen bytes of memory are made of two of text.
	valueEffort = 4
	// maxParts is how many values a schema may have.
	maxParts = 20_000
	// maxSchemaDepth is how deep a schema's text may nest, and maxArgumentsDepth how
	// deep arguments may: both are walked by recursion.
	maxSchemaDepth    = 128
	maxArgumentsDepth = 256
	// maxPointer is how long the pointer to a part of a schema may be, in bytes: every
	// part has one, made of the names above it.
	maxPointer = 1 << 10
	// maxChain is how many schemas may look at one value after another, each because
	// of the one before, and maxLevels how many at a value and those within it: so
	// deep is the stack of a check.
	maxChain  = 256
	maxLevels = 1024
	// maxInstructions is how large a regular expression may become, in instructions
	// of its automaton. It takes a step for each of them for each byte of text.
	maxInstructions = 4096
	// maxPrograms is how large all of a schema may become together. Each is compiled
	// when the schema is checked, and again when it is used.
	maxPrograms = 128 << 10
)
