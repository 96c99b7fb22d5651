package guard

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/caisson-dev/caisson/backends/tool"
)

// policy is a Policy that is ready to judge.
type policy struct {
	Policy
	rules  []rule
	bucket *bucket // nil without a rate; the guard's mu guards it
}

// rule is a Rule that is ready to judge.
type rule struct {
	Rule
	command *pattern // of match.command, or nil
}

func compile(p Policy) (policy, error) {
	c := policy{Policy: p}
	for i, r := range p.Rules {
		compiled := rule{Rule: r}
		bad := func(format string, args ...any) error {
			return tool.Errorf(tool.ConfigInvalid, "%s: %s", c.where(fmt.Sprintf("guard.rules[%d]", i)), fmt.Sprintf(format, args...)).
				WithPath(fmt.Sprintf("guard.rules[%d]", i))
		}
		if !slices.Contains([]Action{Allow, Confirm, Deny}, r.Action) {
			return c, bad("there is no action %q", r.Action)
		}
		for _, glob := range r.Tools {
			if !doublestar.ValidatePattern(glob) {
				return c, bad("%q is not a glob", glob)
			}
		}
		for name, glob := range r.Match {
			if name == "command" {
				command, err := parsePattern(glob)
				if err != nil {
					return c, bad("match.command: %v", err)
				}
				compiled.command = command
			} else if !doublestar.ValidatePattern(glob) {
				return c, bad("match.%s: %q is not a glob", name, glob)
			}
		}
		c.rules = append(c.rules, compiled)
	}
	return c, nil
}

// where says where a member is written.
func (p *policy) where(member string) string {
	if p.Source == "" {
		return member
	}
	return member + " of " + p.Source
}

// verdict is what a policy says about a call, and why.
type verdict struct {
	action  Action
	policy  *policy
	index   int    // of the rule, -1 for none
	command string // that the rule is about, "" for the call as a whole
	unknown string // what about the command is not known, "" when all is
}

func (v verdict) place() string {
	return v.policy.where(fmt.Sprintf("guard.rules[%d]", v.index))
}

// stricter is the stricter of two verdicts, the first of two that are as strict.
func stricter(a, b verdict) verdict {
	rank := func(x Action) int { return slices.Index([]Action{Allow, Confirm, Deny}, x) }
	if rank(b.action) > rank(a.action) {
		return b
	}
	return a
}

// judge finds the first rule that matches. Where rules look at commands, each
// command of the call is judged by itself, and the strictest verdict is the call's.
func (p *policy) judge(s *subject) verdict {
	if !slices.ContainsFunc(p.rules, func(r rule) bool { return r.command != nil && r.concerns(s.call) }) {
		return p.first(s, nil)
	}
	commands := s.commands()
	if len(commands) == 0 {
		return p.first(s, nil)
	}
	v := verdict{action: Allow, policy: p, index: -1}
	for i := range commands {
		v = stricter(v, p.first(s, &commands[i]))
		if v.action == Deny {
			break
		}
	}
	return v
}

// first tries the rules on one command, or on a call that has none.
func (p *policy) first(s *subject, c *command) verdict {
	least := verdict{action: Allow, policy: p, index: -1}
	for i, r := range p.rules {
		if !r.concerns(s.call) || c != nil && c.implied && r.command == nil {
			continue
		}
		v := verdict{action: r.Action, policy: p, index: i}
		matched, unknown := true, ""
		if r.command != nil {
			if c == nil {
				continue
			}
			switch found := r.command.match(c, r.Action == Allow); found {
			case no:
				continue
			case perhaps, beyond:
				// Which command it is cannot be known. A person says, unless what
				// follows is stricter.
				if r.Action == Allow {
					continue
				}
				matched, unknown = false, c.unknown()
				if found == beyond {
					unknown = "with more words and links than are compared"
				}
			case byUnknown:
				unknown = "with arguments that cannot be known before it runs"
			case yes:
			}
			v.command = c.show()
		}
		if !r.matchesArguments(s) {
			continue
		}
		v.unknown = unknown
		if matched {
			return stricter(least, v)
		}
		v.action = Confirm
		least = stricter(least, v)
	}
	return least
}

// concerns reports whether the rule is about the tool and the actor.
func (r *rule) concerns(c Call) bool {
	actor := c.Actor
	if actor == "" {
		actor = tool.ActorMain
	}
	if len(r.Actors) > 0 && !slices.Contains(r.Actors, actor) {
		return false
	}
	names := []string{c.Tool}
	if r.Action != Allow {
		names = append(names, c.Also...)
		if r.command != nil && runsCommands(c.Tool) {
			names = append(names, "shell.bash")
		}
	}
	return slices.ContainsFunc(r.Tools, func(glob string) bool {
		return glob == "*" || slices.ContainsFunc(names, func(name string) bool { return doublestar.MatchUnvalidated(glob, name) })
	})
}

// runsCommands reports whether what the tool runs are commands as well: what a rule
// says about a command of a shell line is no less so of the same command there.
func runsCommands(name string) bool {
	switch name {
	case "git.git", "process.start", "process.process", "shell.job":
		return true
	}
	return false
}

// matchesArguments tries all globs but that of commands. Arguments that cannot be
// read may be anything.
func (r *rule) matchesArguments(s *subject) bool {
	for name, glob := range r.Match {
		if name == "command" {
			continue
		}
		o, err := s.arguments()
		if err != nil {
			if r.Action == Allow {
				return false
			}
			continue
		}
		texts := o.texts(name)
		if isPath(name) {
			texts = decoded(texts)
		}
		if !matchesTexts(glob, name, texts, s.call.directories(), r.Action == Allow) {
			return false
		}
	}
	return true
}

// matchesTexts reports whether an argument matches: for allow all of its texts
// must, as what they name, else any of them, also as it is written.
func matchesTexts(glob, name string, texts, dirs []string, all bool) bool {
	if len(texts) == 0 {
		return false
	}
	one := func(text string) bool {
		if doublestar.MatchUnvalidated(glob, text) && (!all || !isPath(name) || text == path.Clean(text)) {
			return true
		}
		return isPath(name) && slices.ContainsFunc(spellings(text, dirs), func(s string) bool { return doublestar.MatchUnvalidated(glob, s) })
	}
	if all {
		return !slices.ContainsFunc(texts, func(t string) bool { return !one(t) })
	}
	return slices.ContainsFunc(texts, one)
}

func isPath(name string) bool { return name == "path" || name == "cwd" }

// decoded are paths as they are written, and, of those in the notation "bytes:" that
// tools take as well, also what they stand for.
func decoded(paths []string) []string {
	all := slices.Clip(paths)
	for _, p := range paths {
		if plain, ok := decode(p); ok {
			all = append(all, plain)
		}
	}
	return all
}

// decode undoes the notation of paths in which %XX stands for one byte.
func decode(p string) (string, bool) {
	coded, ok := strings.CutPrefix(p, "bytes:")
	if !ok {
		return "", false
	}
	plain, err := url.PathUnescape(coded)
	return plain, err == nil // what is badly coded is refused by every tool
}

// spellings are the names of one file: clean, from the directory on, and absolute, for
// each name that the directory has.
func spellings(text string, dirs []string) []string {
	clean := path.Clean(text)
	inside, within := clean, !path.IsAbs(clean)
	for _, dir := range dirs {
		if rest, ok := strings.CutPrefix(clean, strings.TrimSuffix(dir, "/")+"/"); ok && !within {
			inside, within = rest, true
		}
		if clean == dir {
			inside, within = ".", true
		}
	}
	if !within || len(dirs) == 0 {
		return []string{clean}
	}
	var all []string
	for _, dir := range dirs {
		whole := path.Join(dir, inside)
		all = append(all, whole)
		if rest, ok := strings.CutPrefix(whole, strings.TrimSuffix(dir, "/")+"/"); ok {
			all = append(all, rest)
		}
		if whole == dir {
			all = append(all, ".")
		}
	}
	return all
}

// because says in one sentence why there is a verdict.
func (v verdict) because() string {
	var b strings.Builder
	if v.command != "" {
		fmt.Fprintf(&b, "the command `%s` ", v.command)
		if v.unknown != "" {
			fmt.Fprintf(&b, "(%s) may be what ", v.unknown)
		} else {
			b.WriteString("is what ")
		}
		b.WriteString(v.place())
		fmt.Fprintf(&b, " (`%s`) is about", printable(cut(v.policy.rules[v.index].Match["command"], maxShown)))
	} else {
		fmt.Fprintf(&b, "%s is about such calls", v.place())
	}
	if r := v.policy.rules[v.index].Reason; r != "" {
		// It may be a project's, and must not pass for more than that on a terminal.
		fmt.Fprintf(&b, ": %s", printable(cut(strings.Join(strings.Fields(r), " "), maxReason)))
	}
	return b.String()
}

// refusal is the error of a call that a rule denies.
func (v verdict) refusal(c Call) error {
	e := tool.Errorf(tool.Denied, "%s was not run: %s, which denies it", c.Tool, v.because()).WithPath(fmt.Sprintf("guard.rules[%d]", v.index))
	switch {
	case v.unknown != "":
		return e.WithHint("Write the command out with words that stand in the line, without variables or substitutions that are only known when it runs; or do it another way.")
	case v.command != "":
		return e.WithHint("Do it another way, without this command. Other commands of the line were not run either and can be called without it; other spellings of it are denied as well.")
	}
	return e.WithHint("Do it another way, or tell the user what you need it for: the rule is the user's to change.")
}

// unconfirmed is the error of a call that needed a yes and got none.
func (v verdict) unconfirmed(c Call, format string, args ...any) error {
	e := tool.Errorf(tool.Denied, "%s was not run: it needs a person's confirmation, since %s, %s", c.Tool, v.because(), fmt.Sprintf(format, args...)).
		WithPath(fmt.Sprintf("guard.rules[%d]", v.index))
	if v.unknown != "" {
		return e.WithHint("Write the command out with words that stand in the line, so that it can be seen what it is; or ask the user.")
	}
	return e.WithHint("Do it another way, or ask the user to allow it.")
}
