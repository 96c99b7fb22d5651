package guard

import (
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
// through. A line that cannot be parsed is left to the environment, which does not run
// it and says what the shell makes of it.
func (l *Lists) Check(c Call) error {
	if l == nil {
		return nil
	}
	commands := (&subject{call: c}).commands()
	for i := range commands {
		found := &commands[i]
		if found.unparsed && !found.top {
			return tool.Errorf(tool.Denied, "%s was not run: the code `%s`, which a shell inside would run, cannot be parsed, so that the profile's lists of commands cannot be checked", c.Tool, found.show()).
				WithHint("Write it in plain shell, or put it into a script.").WithPath("denied_commands")
		}
		for _, p := range l.denied {
			if p.match(found, false) == yes {
				return tool.Errorf(tool.Denied, "%s was not run: the command `%s` is denied by `%s` in denied_commands of its profile", c.Tool, found.show(), p.text).
					WithHint("Do it another way, without this command. Nothing else of the line was run.").WithPath("denied_commands")
			}
		}
	}
	if len(l.allowed) == 0 {
		return nil
	}
	for i := range commands {
		found := &commands[i]
		if found.through || found.unparsed {
			continue // what it runs is looked at; what no shell understands is not run
		}
		if !l.allows(found) {
			return tool.Errorf(tool.Denied, "%s was not run: the command `%s` is not among the allowed_commands of its profile", c.Tool, found.show()).
				WithHint("Use only the commands that are allowed, each written out: %s.", l.names()).WithPath("allowed_commands")
		}
	}
	return nil
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
