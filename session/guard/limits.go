package guard

import "time"

// Limits of the guard.
const (
	// DefaultConfirmTimeout is how long a person has to answer where a policy does
	// not say.
	DefaultConfirmTimeout = 2 * time.Minute
	// maxLine is the longest shell line, in bytes, that is analysed. A longer one
	// is code that is not known: nobody writes it by hand, and a file can hold it.
	maxLine = 64 << 10
	// maxSteps bounds the work on one line, in commands that were followed. A
	// line that makes more of itself is code that is not known.
	maxSteps = 4000
	// maxExpansions bounds the words of one line, expanded ones counted each time.
	maxExpansions = 40_000
	// maxVariables is how many variables, functions and aliases a line may have, of
	// which each shell inside has a copy.
	maxVariables = 256
	// maxExpanded bounds the text of all words, code and files of one line, each time
	// that they are looked at, in bytes.
	maxExpanded = 2 << 20
	// maxNoted bounds the words of all commands of one line, which each program that runs
	// another one has again, and the files that they read and write.
	maxNoted = 100_000
	// maxCompared bounds the work of comparing one call with all rules, about one for each
	// character: some tenths of a second. A command beyond it may be any.
	maxCompared = 32 << 20
	// fileWork, codeWork and scanWork are what looking at the name of a file that the line
	// wrote, parsing code, and taking apart a call in a program of another language are
	// charged besides, in bytes.
	fileWork, codeWork, scanWork = 4, 64, 256
	// argumentWork, wordWork, pathWork and schemeWork are what comparing an argument with
	// flags, a text with a word, finding out where a path is, and looking for paths in a
	// word take besides, in characters.
	argumentWork, wordWork, pathWork, schemeWork = 2, 4, 64, 64
	// maxDepth bounds shells inside shells, functions inside functions.
	maxDepth = 24
	// maxNesting bounds brackets inside brackets of one line: the parser recurses.
	maxNesting = 200
	// maxText is the longest text, in bytes, that a variable or an output is
	// followed with. A longer one is not known.
	maxText = 16 << 10
	// maxBraces is how many words one brace expansion may make.
	maxBraces = 256
	// maxCall is the longest call in a program of another language, in bytes, whose
	// arguments are looked at. What is behind it is not known.
	maxCall = 8 << 10
	// maxNames is how many names of files in a program of another language are followed, for
	// one command.
	maxNames = 1024
	// maxTurns is how many turns of a loop over known words are followed.
	maxTurns = 64
	// maxGlobWork bounds one comparison of a pattern with a word, in steps.
	maxGlobWork = 1 << 20
	// maxShown is how much of a command a message shows, in bytes.
	maxShown = 200
	// maxReason is how much of a rule's reason a message shows, in bytes.
	maxReason = 1000
	// maxShownArguments is how much of the arguments a question shows, in bytes. A command
	// that can be run (Linux takes 128 KiB of one) is whole in it, however it is escaped.
	maxShownArguments = 1 << 20
	// maxRemembered is how many answers are remembered in a session. The oldest
	// are forgotten, and asked for again.
	maxRemembered = 1024
	// maxQuestions is how many questions of one session may wait for a person.
	maxQuestions = 64
)
