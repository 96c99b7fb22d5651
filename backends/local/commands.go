package local

import (
	"encoding/json"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// checkedLines says whether the profile has lists of commands. They are checked, where
// a session admits calls, on the parsed line; that no line runs which cannot be
// parsed, and was not checked for that, is seen to here.
type checkedLines bool

func newCheckedLines(p profile.Profile) checkedLines {
	return len(p.AllowedCommands)+len(p.DeniedCommands) > 0
}

// ofCall parses the line of a call of bash. What is malformed is left to the tool.
func (c checkedLines) ofCall(r tool.Request) error {
	var in struct {
		Command string `json:"command"`
	}
	if r.Name != "bash" || json.Unmarshal(r.Arguments, &in) != nil {
		return nil
	}
	return c.parse(in.Command)
}

// ofJob parses a job's script, where a shell reads it.
func (c checkedLines) ofJob(r backends.JobRequest) error {
	if r.Script == nil || !isShell(r.Script.Interpreter) {
		return nil
	}
	return c.parse(r.Script.Source)
}

// parse fails where there are lists and the line cannot be parsed.
func (c checkedLines) parse(line string) error {
	if !c {
		return nil
	}
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), ""); err != nil {
		return unparsed(err)
	}
	return nil
}

// isShell reports whether a job's interpreter, or what env starts for one, is a shell.
func isShell(interpreter string) bool {
	for word := range strings.FieldsSeq(interpreter) {
		switch word[strings.LastIndexByte(word, '/')+1:] {
		case "sh", "bash", "dash", "zsh", "ksh":
			return true
		}
	}
	return false
}
