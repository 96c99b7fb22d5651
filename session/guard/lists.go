package guard

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Lists are the commands that a profile allows and denies, in patterns as rules
// have them.
type Lists struct {
	allowed, denied []*pattern
}

// NewLists reads the patterns; nil stands for lists that deny nothing.
func NewLists(allowed, denied []string) (*Lists, error) {
	if len(allowed) == 0 && len(denied) == 0 {
		return nil, nil
	}
	l := &Lists{}
	for _, list := range []struct {
		name  string
		texts []string
		into  *[]*pattern
	}{{"allowed_commands", allowed, &l.allowed}, {"denied_commands", denied, &l.denied}} {
		for _, text := range list.texts {
			p, err := parsePattern(text)
			if err != nil {
				return nil, tool.Errorf(tool.ConfigInvalid, "%s: %w", list.name, err).WithPath(list.name)
			}
			p.text = text
			*list.into = append(*list.into, p)
		}
	}
	return l, nil
}

// Check denies a call that runs a command which is denied, or one that is not
// among the allowed ones. Denied is what is known to be one: these lists are a net
// against mistakes, and where what cannot be known is to be asked about, a rule
// says so. Allowed is only what is known to be; shells, sudo and their like are looked
// through. A line that cannot be parsed may be one that a shell understands: nothing
// of it is known to be allowed, and what looks like a denied command in it is one.
// Otherwise it is left to the environment, which says what the shell makes of it.
func (l *Lists) Check(c Call) error {
	if l == nil {
		return nil
	}
	commands := (&subject{call: c}).commands()
	again := &effort{}
	for i := range commands {
		found := &commands[i]
		if found.unparsed && !found.top {
			return tool.Errorf(tool.Denied, "%s was not run: the code `%s`, which a shell inside would run, cannot be parsed, so that the profile's lists of commands cannot be checked", c.Tool, found.show()).
				WithHint("Write it in plain shell, or put it into a script.").WithPath("denied_commands")
		}
		for _, one := range append(found.pieces(again), *found) {
			if p := l.denies(&one); p != nil {
				return tool.Errorf(tool.Denied, "%s was not run: the command `%s` is denied by `%s` in denied_commands of its profile", c.Tool, one.show(), p.text).
					WithHint("Do it another way, without this command. Nothing else of the line was run.").WithPath("denied_commands")
			}
		}
	}
	if len(l.allowed) == 0 {
		return nil
	}
	for i := range commands {
		found := &commands[i]
		if found.through || found.implied {
			continue // what it runs is looked at
		}
		if found.unparsed {
			return tool.Errorf(tool.Denied, "%s was not run: the line cannot be parsed as a shell line, so that nothing in it is known to be among the allowed_commands of its profile", c.Tool).
				WithHint("Look at its quotes and brackets, and write it in plain shell.").WithPath("allowed_commands")
		}
		if !l.allows(found) {
			return tool.Errorf(tool.Denied, "%s was not run: the command `%s` is not among the allowed_commands of its profile", c.Tool, found.show()).
				WithHint("Use only the commands that are allowed, each written out: %s.", l.names()).WithPath("allowed_commands")
		}
	}
	return nil
}

// denies is the pattern that denies a command, nil where none does.
func (l *Lists) denies(c *command) *pattern {
	for _, p := range l.denied {
		if p.match(c, false) == yes {
			return p
		}
	}
	return nil
}

// pieces are the commands that stand in code which was not parsed, by what separates
// commands in all shells.
func (c *command) pieces(e *effort) []command {
	w := newWalker(e)
	for piece := range strings.FieldsFuncSeq(c.code, func(r rune) bool { return strings.ContainsRune("\n;&|(){}`", r) }) {
		w.code(newShell(c.dir), piece, unread)
		if len(w.found) > maxSteps {
			break
		}
	}
	return slices.DeleteFunc(w.found, func(c command) bool { return c.unparsed })
}

func (l *Lists) allows(c *command) bool {
	for _, p := range l.allowed {
		if p.match(c, true) == yes {
			return true
		}
	}
	return false
}

func (l *Lists) names() string {
	text := ""
	for i, p := range l.allowed {
		if i > 0 {
			text += ", "
		}
		text += "`" + p.text + "`"
	}
	return cut(text, 4*maxShown)
}
