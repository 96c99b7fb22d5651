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
	sectionPacks      = "packs/add"
	sectionEnding     = "Ending"
)

// Clauses whose breaches show while others are driven, or keep others from being driven.
const (
	clauseFramesOnly   = "frames-only"
	clauseOneReply     = "one-reply"
	clauseErrorText    = "error-text"
	clauseCancel       = "cancel"
	clauseCancelSilent = "cancel-silent"
	clauseToolResult   = "tool-result"
	clausePresent      = "tool-present-artifact"
	clauseBulk         = "bulk"
	clausePack         = "pack"
	clauseStreams      = "streams-end"
)

// clauses are all of them, by section.
func clauses() []clause {
	return slices.Concat(
		framing(), tokens(), beginning(), calls(), files(), commands(), processes(), exports(), programs(), extensions(), jobs(), packs(), ending())
}

// rule is a clause that is driven on a connection with others.
func rule(name, section, says string, drive func(t *trial)) clause {
	return clause{Clause: Clause{Name: name, Section: section, Says: says}, drive: drive}
}

// given makes it one that is not driven where one of these clauses is broken, since it
// would show nothing then. They must stand before it in the list, and share the connection
// if it does.
func (c clause) given(names ...string) clause {
	c.after = names
	return c
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
