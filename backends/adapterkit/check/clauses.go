package check

import "slices"

// Sections of the protocol's document.
const (
	sectionFrames     = "Frames"
	sectionInitialize = "initialize"
	sectionExecute    = "execute"
	sectionProcess    = "process/*"
	sectionExport     = "export/*"
	sectionRunCode    = "run_code and callbacks"
	sectionExtensions = "Extensions"
	sectionJobs       = "job/run"
	sectionEnding     = "Ending"
)

// Clauses whose breaches show while others are driven.
const (
	clauseFramesOnly   = "frames-only"
	clauseOneReply     = "one-reply"
	clauseErrorText    = "error-text"
	clauseCancelSilent = "cancel-silent"
	clauseToolResult   = "tool-result"
	clauseBulk         = "bulk"
)

// clauses are all of them, by section.
func clauses() []clause {
	return slices.Concat(
		framing(), tokens(), beginning(), calls(), files(), commands(), processes(), exports(), programs(), extensions(), jobs(), ending())
}

// rule is a clause that is driven on a connection with others.
func rule(name, section, says string, drive func(t *trial)) clause {
	return clause{Clause: Clause{Name: name, Section: section, Says: says}, drive: drive}
}

// apart makes it one that needs a connection of its own.
func (c clause) apart() clause {
	c.alone = true
	return c
}

// unprepared makes it one that initializes by itself.
func (c clause) unprepared() clause {
	c.alone, c.bare = true, true
	return c
}
