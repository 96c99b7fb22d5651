package guard

import (
	"maps"
	"slices"
)

// effort is what judging one call has taken so far: all that follows its code, and all that
// compares it with rules, has the same one. What is beyond its limits is not known.
type effort struct {
	steps int // commands that were followed
	words int // that were expanded
	bytes int // of words, of code and of files, each time that they are looked at
	noted int // words of commands, and files that they read and write
	// compared is the work of comparing them with rules.
	compared int
	// spent is when nothing more of the call is followed.
	spent bool
}

// compare takes work of comparing, about one for each character, and reports whether there
// is some left.
func (e *effort) compare(n int) bool {
	e.compared += n
	return e.compared <= maxCompared
}

// charge takes work on so many bytes, and reports whether there has been enough.
func (w *walker) charge(n int) bool {
	w.bytes += n
	if w.bytes > maxExpanded || w.noted > maxNoted {
		w.spend()
	}
	return w.spent
}

// over reports whether there has been enough work, and notes it once.
func (w *walker) over(sh *shell) bool {
	w.steps++
	if w.steps > maxSteps || sh.depth > maxDepth*4 || len(sh.vars)+len(sh.aliases)+len(sh.funcs) > maxVariables {
		w.spend()
	}
	return w.charge(0)
}

// spend ends the work, and notes it once.
func (w *walker) spend() {
	if !w.spent {
		w.spent = true
		w.exhausted()
	}
}

// exhausted notes that nothing more of the line is followed.
func (w *walker) exhausted() { w.give("the line", "it does more than what is followed") }

// text is what the line wrote into the file at an absolute path, "" where it did not.
func (w *walker) text(sh *shell, name string) string {
	text := sh.files[name]
	w.charge(len(text))
	return text
}

// fileNames are the names of the files that the line wrote, in order. There are never fewer.
func (w *walker) fileNames(sh *shell) []string {
	w.charge(fileWork * len(sh.files))
	if len(*sh.sorted) != len(sh.files) {
		*sh.sorted = slices.Sorted(maps.Keys(sh.files))
	}
	return *sh.sorted
}
