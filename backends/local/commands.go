package local

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// maxNesting is how many shells inside shells are looked into.
const maxNesting = 8

// commandLists are a profile's allowed and denied commands.
//
// An entry is a command with the beginning of its arguments: its program is
// compared by base name, its options may stand in any order and be written
// together or apart, and its other words must come first and in order. Lines are
// parsed, so that quoting, pipes and substitutions hide nothing; shells, sudo and
// their like are looked through. What only the running shell knows cannot be
// denied here; it is not allowed either where a list of allowed commands is
// given.
type commandLists struct{ allowed, denied [][]string }

func newCommandLists(p profile.Profile) commandLists {
	return commandLists{allowed: entries(p.AllowedCommands), denied: entries(p.DeniedCommands)}
}

func entries(list []string) [][]string {
	var all [][]string
	for _, e := range list {
		if words := strings.Fields(e); len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

func (l commandLists) empty() bool { return len(l.allowed)+len(l.denied) == 0 }

// checkCall checks a call of bash or git. What is malformed is left to the tool.
func (l commandLists) checkCall(r tool.Request) error {
	if l.empty() {
		return nil
	}
	switch r.Name {
	case "bash":
		var in struct {
			Command string `json:"command"`
		}
		if json.Unmarshal(r.Arguments, &in) != nil {
			return nil
		}
		return l.checkLine(in.Command, 0)
	case "git":
		var in struct {
			Subcommand string   `json:"subcommand"`
			Args       []string `json:"args"`
		}
		if json.Unmarshal(r.Arguments, &in) != nil {
			return nil
		}
		return l.checkWords(append([]string{"git", in.Subcommand}, in.Args...), 0)
	}
	return nil
}

func (l commandLists) checkStart(r tool.StartRequest) error {
	switch {
	case l.empty():
		return nil
	case len(r.Argv) > 0:
		return l.checkWords(r.Argv, 0)
	default:
		return l.checkLine(r.Command, 0)
	}
}

// checkLine checks every simple command of a shell line.
func (l commandLists) checkLine(line string, depth int) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		if depth > 0 { // whose shell would have run something already
			return tool.Errorf(tool.Denied, "the command line of a shell inside cannot be parsed, so that the profile's command lists cannot be checked: %w", err)
		}
		return unparsed(err)
	}
	var found error
	syntax.Walk(file, func(node syntax.Node) bool {
		if found != nil {
			return false
		}
		switch node := node.(type) {
		case *syntax.CallExpr:
			if len(node.Args) > 0 {
				found = l.checkWords(literals(node.Args), depth)
			}
		case *syntax.Stmt:
			found = l.checkInput(node, depth)
		}
		return found == nil
	})
	return found
}

// checkInput checks what a statement gives a shell to read.
func (l commandLists) checkInput(s *syntax.Stmt, depth int) error {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || depth == maxNesting || len(call.Args) == 0 || !isShell(literals(call.Args[:1])[0]) {
		return nil
	}
	for _, r := range s.Redirs {
		var script string
		switch {
		case r.Op == syntax.WordHdoc:
			script = literal(r.Word.Parts)
		case r.Hdoc != nil:
			script = literal(r.Hdoc.Parts)
		}
		if script == "" || script == unknown {
			continue
		}
		if err := l.checkLine(script, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh"}, path.Base(program))
}

// unknown stands for a word that only the running shell knows. No word of a
// parsed line holds a NUL.
const unknown = "\x00"

func literals(words []*syntax.Word) []string {
	var all []string
	for _, w := range words {
		all = append(all, braced(*w)...)
	}
	return all
}

// maxBraces is how many words the braces of one may stand for and be looked at.
const maxBraces = 256

// braced are the words that a word with braces stands for.
func braced(w syntax.Word) []string {
	if !syntax.SplitBraces(&w) { // of our copy
		return []string{literal(w.Parts)}
	}
	var all []string
	for w, err := range expand.BracesSeq(nil, &w) {
		if err != nil || len(all) == maxBraces {
			return []string{unknown}
		}
		all = append(all, literal(w.Parts))
	}
	return all
}

func literal(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.WriteString(p.Value)
				break
			}
			s, _, err := expand.Format(nil, p.Value, nil) // $'…' takes the same escapes
			if err != nil {
				return unknown
			}
			b.WriteString(s)
		case *syntax.DblQuoted:
			inner := literal(p.Parts)
			if inner == unknown {
				return unknown
			}
			b.WriteString(inner)
		default:
			return unknown
		}
	}
	return b.String()
}

func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// checkWords checks one simple command and, when it runs another one, that one.
func (l commandLists) checkWords(words []string, depth int) error {
	if len(words) == 0 {
		return nil
	}
	for _, entry := range l.denied {
		if matches(entry, words) {
			return tool.Errorf(tool.Denied, "the profile denies the command %q", strings.Join(entry, " ")).
				WithHint("denied_commands in the profile lists it")
		}
	}
	if inner, line, ok := wrapped(words); ok && depth < maxNesting {
		if line != "" {
			return l.checkLine(line, depth+1)
		}
		return l.checkWords(inner, depth+1)
	}
	if len(l.allowed) == 0 || slices.ContainsFunc(l.allowed, func(e []string) bool { return matches(e, words) }) {
		return nil
	}
	name := words[0]
	if name == unknown {
		name = "that only the shell knows"
	}
	return tool.Errorf(tool.Denied, "the profile does not allow the command %s", name).
		WithHint("allowed_commands in the profile lists what may run")
}

// matches reports whether a command is one of an entry.
func matches(entry, words []string) bool {
	program := path.Base(words[0])
	if program != entry[0] && words[0] != entry[0] && !strings.HasPrefix(program, entry[0]+".") {
		return false
	}
	wanted, given := split(entry[1:]), split(words[1:])
	for option := range wanted.options {
		if !given.options[option] {
			return false
		}
	}
	return len(given.operands) >= len(wanted.operands) &&
		slices.Equal(given.operands[:len(wanted.operands)], wanted.operands)
}

type arguments struct {
	options  map[string]bool
	operands []string
}

// split sorts arguments into options, short ones letter by letter, and the rest.
func split(words []string) arguments {
	a := arguments{options: map[string]bool{}}
	for i, w := range words {
		switch {
		case w == "--":
			a.operands = append(a.operands, words[i+1:]...)
			return a
		case strings.HasPrefix(w, "--"):
			a.options[w] = true
		case len(w) > 1 && w[0] == '-':
			for _, letter := range w[1:] {
				a.options["-"+string(letter)] = true
			}
		default:
			a.operands = append(a.operands, w)
		}
	}
	return a
}

// wrapped is the command that words run as their own doing: a shell line, or
// words of their own.
func wrapped(words []string) (inner []string, line string, ok bool) {
	switch program := path.Base(words[0]); {
	case isShell(program):
		for i, w := range words[1:] {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c") && i+2 < len(words) {
				if script := words[i+2]; script != unknown && script != "" {
					return nil, script, true
				}
				return nil, "", false
			}
		}
	case program == "eval":
		if line := strings.Join(words[1:], " "); line != "" && !strings.Contains(line, unknown) {
			return nil, line, true
		}
	case slices.Contains([]string{
		"sudo", "doas", "env", "nice", "nohup", "time", "exec", "command", "builtin", "xargs", "setsid", "timeout", "stdbuf", "ionice",
	}, program):
		for i := 1; i < len(words); i++ {
			w := words[i]
			switch {
			case (w == "-S" || w == "--split-string") && program == "env" && i+1 < len(words):
				return nil, strings.Join(words[i+1:], " "), true
			case takesValue(program, w):
				i++
			case strings.HasPrefix(w, "-"), strings.Contains(w, "="), strings.Trim(w, "0123456789.smhd") == "":
				// Options, assignments and the numbers that options and timeout take.
			default:
				return words[i:], "", true
			}
		}
	}
	return nil, "", false
}

// takesValue reports whether the word behind an option is the option's.
func takesValue(program, option string) bool {
	var options string
	switch program {
	case "sudo":
		options = "-u -g -h -p -C -T -D -R -r -t -U --user --group --host --prompt --chdir --chroot --role --type"
	case "doas":
		options = "-u -C"
	case "env":
		options = "-u -C --unset --chdir"
	case "nice":
		options = "-n --adjustment"
	case "ionice":
		options = "-c -n --class --classdata"
	case "exec":
		options = "-a"
	case "xargs":
		options = "-I -n -P -L -d -E -a -s --replace --max-args --max-procs --max-lines --delimiter --arg-file --max-chars"
	case "timeout":
		options = "-s -k --signal --kill-after"
	case "stdbuf":
		options = "-i -o -e --input --output --error"
	case "time":
		options = "-f -o --format --output"
	}
	return slices.Contains(strings.Fields(options), option)
}
