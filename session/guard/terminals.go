package guard

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// effect is what a word or flag of a program that keeps terminals does.
type effect int

const (
	// harmless shows, ends or names something.
	harmless effect = iota
	// opens starts the command that stands behind, and without one a shell.
	opens
	// joins lets somebody type into what runs already.
	joins
	// types gives the words behind it to what runs, as keys.
	types
	// pastes gives to what runs a text that does not stand in the line.
	pastes
	// feeds gives its standard input to what runs.
	feeds
	// reads takes commands of the program from the files behind it.
	reads
	// shells gives the words behind it to a shell, each by itself.
	shells
	// nested has commands of the program in the words behind it.
	nested
)

// act is a word or a flag of such a program.
type act struct {
	effect effect
	// values are the flags whose value is the next word, separated by spaces.
	values string
	// skip is how many words stand before those that count.
	skip int
	// of is the table of the commands that are nested in it; "" is the program's own.
	of string
}

// terminal is a program that keeps terminals, which last longer than the line.
type terminal struct {
	// values are its own flags whose value is the next word, code those of which that is
	// shell code, and files those of which it is a file of commands.
	values, code, files string
	// acts are what its words and flags do. Words may be cut short.
	acts map[string]act
	// joining are letters of flags by which it joins what runs.
	joining string
	// ends are flags with which it does nothing else.
	ends string
	// otherwise is what a word does that is none of the acts, and alone what the program does
	// without any.
	otherwise, alone effect
	// many: a word that is or ends in a semicolon ends a command.
	many bool
}

// terminals are the programs that keep terminals, and tables of commands of theirs.
var terminals = sync.OnceValue(func() map[string]terminal {
	return map[string]terminal{
		"tmux": {
			values: "-L -S -T", code: "-c", files: "-f", alone: opens, many: true, ends: "-V -h",
			acts: map[string]act{
				"new-session": {effect: opens, values: "-c -e -F -f -n -s -t -x -y"}, "new": {effect: opens, values: "-c -e -F -f -n -s -t -x -y"},
				"new-window": {effect: opens, values: "-c -e -F -n -t"}, "neww": {effect: opens, values: "-c -e -F -n -t"},
				"split-window": {effect: opens, values: "-c -e -F -l -p -t"}, "splitw": {effect: opens, values: "-c -e -F -l -p -t"},
				"respawn-pane": {effect: opens, values: "-c -e -t"}, "respawnp": {effect: opens, values: "-c -e -t"},
				"respawn-window": {effect: opens, values: "-c -e -t"}, "respawnw": {effect: opens, values: "-c -e -t"},
				"display-popup": {effect: opens, values: "-b -c -d -e -h -s -S -t -T -w -x -y"}, "popup": {effect: opens, values: "-b -c -d -e -h -s -S -t -T -w -x -y"},
				"attach-session": {effect: joins}, "attach": {effect: joins},
				"send-keys": {effect: types, values: "-c -N -t"}, "send": {effect: types, values: "-c -N -t"},
				"paste-buffer": {effect: pastes}, "pasteb": {effect: pastes}, "source-file": {effect: reads}, "source": {effect: reads},
				"run-shell": {effect: shells, values: "-c -d -t"}, "run": {effect: shells, values: "-c -d -t"},
				"pipe-pane": {effect: shells, values: "-t"}, "pipep": {effect: shells, values: "-t"},
				"if-shell": {effect: shells, values: "-t"}, "if": {effect: shells, values: "-t"},
				"bind-key": {effect: nested}, "bind": {effect: nested}, "set-hook": {effect: nested}, "command-prompt": {effect: nested},
				"confirm-before": {effect: nested}, "confirm": {effect: nested}, "display-menu": {effect: nested}, "menu": {effect: nested},
				"set-option": {effect: nested, of: "tmux options"}, "set": {effect: nested, of: "tmux options"},
				"set-window-option": {effect: nested, of: "tmux options"}, "setw": {effect: nested, of: "tmux options"},
				// What looks like the beginning of one above, and is none.
				"display": {}, "send-prefix": {}, "server-info": {}, "info": {}, "set-buffer": {}, "set-environment": {}, "setenv": {},
			},
		},
		"tmux options": {acts: map[string]act{
			"default-command": {effect: shells}, "default-shell": {effect: shells}, "copy-command": {effect: shells}, "lock-command": {effect: shells}, "editor": {effect: shells},
		}},
		"screen": {
			values: "-S -e -h -p -T -t -Logfile", code: "-s", files: "-c", alone: opens, otherwise: opens, joining: "rRx", ends: "-ls -list -wipe -v --version --help",
			acts: map[string]act{"-X": {effect: nested, of: "screen commands"}},
		},
		"screen commands": {acts: map[string]act{
			"stuff": {effect: types}, "screen": {effect: opens, values: "-t -h -T"}, "exec": {effect: opens},
			"paste": {effect: pastes}, "process": {effect: pastes}, "readbuf": {effect: pastes}, "source": {effect: reads},
			"backtick": {effect: shells}, "bind": {effect: nested}, "bindkey": {effect: nested}, "eval": {effect: nested}, "at": {effect: nested},
		}},
		"dtach": {
			values: "-e -r",
			acts: map[string]act{
				"-A": {effect: opens, values: "-e -r", skip: 1}, "-c": {effect: opens, values: "-e -r", skip: 1}, "-n": {effect: opens, values: "-e -r", skip: 1},
				"-N": {effect: opens, values: "-e -r", skip: 1}, "-a": {effect: joins}, "-p": {effect: feeds},
			},
		},
		"abduco": {
			values: "-e",
			acts: map[string]act{
				"-A": {effect: opens, values: "-e", skip: 1}, "-c": {effect: opens, values: "-e", skip: 1}, "-n": {effect: opens, values: "-e", skip: 1},
				"-a": {effect: joins}, "-p": {effect: feeds},
			},
		},
		"zellij": {
			values: "-s --session -l --layout -c --config --config-dir --data-dir --max-panes -n --new-session-with-layout", alone: opens, ends: "-V --version -h --help",
			acts: map[string]act{
				"attach": {effect: joins}, "a": {effect: joins},
				"run": {effect: opens, values: "-d --direction -n --name --cwd -x -y --width --height"}, "r": {effect: opens, values: "-d --direction -n --name --cwd -x -y --width --height"},
				"action": {effect: nested, of: "zellij actions"}, "ac": {effect: nested, of: "zellij actions"},
				"list-sessions": {}, "ls": {}, "kill-session": {}, "k": {}, "kill-all-sessions": {}, "ka": {}, "delete-session": {}, "d": {}, "setup": {},
				"options": {effect: opens}, "edit": {}, "e": {}, "plugin": {}, "pipe": {}, "convert-config": {}, "list-aliases": {},
			},
		},
		"zellij actions": {acts: map[string]act{
			"new-pane": {effect: opens, values: "-d --direction -n --name --cwd -p --plugin -x -y --width --height"},
			"new-tab":  {effect: opens, values: "-n --name -l --layout -c --cwd"}, "write-chars": {effect: types}, "write": {effect: pastes},
		}},
	}
})

// sameTerminals are programs that are used as another one is.
var sameTerminals = map[string]string{"tmate": "tmux", "byobu": "tmux", "byobu-tmux": "tmux", "byobu-screen": "screen"}

// keeps follows a program that keeps terminals.
func (w *walker) keeps(sh *shell, name, table string, args []field, stdin string) {
	t := terminals()[table]
	for t.many {
		i := slices.IndexFunc(args, func(f field) bool { return strings.HasSuffix(f.text, ";") })
		if i < 0 {
			break
		}
		first := slices.Clone(args[:i])
		if word := strings.TrimSuffix(args[i].text, ";"); word != "" {
			first = append(first, field{text: word})
		}
		w.command(sh, name, table, first, stdin)
		if args = args[i+1:]; len(args) == 0 {
			return
		}
	}
	w.command(sh, name, table, args, stdin)
}

// command follows one command of such a program.
func (w *walker) command(sh *shell, name, table string, args []field, stdin string) {
	t := terminals()[table]
	for _, a := range args { // a format may hold the output of a command
		for _, after := range strings.Split(a.text, "#(")[1:] {
			code, _, _ := strings.Cut(after, ")")
			w.code(sh.child(), code, unread)
		}
	}
	for len(args) > 0 {
		arg := args[0].text
		rest := args[1:]
		a, found := t.act(arg)
		switch {
		case found:
			w.act(sh, name+" "+arg, table, a, rest, stdin)
			return
		case slices.Contains(strings.Fields(t.ends), arg):
			return
		case slices.Contains(strings.Fields(t.code), arg) && len(rest) > 0:
			w.code(sh.child(), rest[0].text, unread)
			rest = rest[1:]
		case slices.Contains(strings.Fields(t.files), arg) && len(rest) > 0:
			of := table
			if table == "screen" {
				of = "screen commands"
			}
			w.act(sh, name, of, act{effect: reads}, rest[:1], stdin)
			rest = rest[1:]
		case !known(arg):
			w.give(name, "which of its commands it is, is only known when it runs")
			return
		case !strings.HasPrefix(arg, "-"):
			if t.otherwise != harmless {
				w.act(sh, name, table, act{effect: t.otherwise}, args, stdin)
			}
			return
		default:
			if t.joining != "" && strings.ContainsAny(arg, t.joining) {
				w.act(sh, name+" "+arg, table, act{effect: joins}, rest, stdin)
				return
			}
			if takesNext(strings.Fields(t.values), arg) && len(rest) > 0 {
				rest = rest[1:]
			}
		}
		args = rest
	}
	if t.alone != harmless {
		w.act(sh, name, table, act{effect: t.alone}, nil, stdin)
	}
}

// act is what a word does. One that is cut short is all that it may be the beginning of, of
// which the strictest counts.
func (t terminal) act(word string) (act, bool) {
	if a, ok := t.acts[word]; ok {
		return a, true
	}
	best, found := act{}, false
	if word == "" || word[0] == '-' {
		return best, found
	}
	for _, name := range slices.Sorted(maps.Keys(t.acts)) {
		if a := t.acts[name]; strings.HasPrefix(name, word) && (!found || a.effect > best.effect) {
			best, found = a, true
		}
	}
	return best, found
}

// act follows what one command does with the words behind it.
func (w *walker) act(sh *shell, name, table string, a act, args []field, stdin string) {
	words := operandsBehind(strings.Fields(a.values), args)
	if a.skip > 0 {
		words = operandsBehind(strings.Fields(a.values), words[min(a.skip, len(words)):])
	}
	switch a.effect {
	case harmless:
	case opens:
		switch {
		case len(words) == 0:
			w.give(name, "it opens a shell, and what is typed into that is only known then")
		case len(words) == 1 && strings.ContainsAny(words[0].text, " \t\n"):
			w.code(sh.child(), words[0].text, unread)
		default:
			w.run(sh.child(), words, unread)
		}
	case joins:
		w.give(name, "what is typed into the shell that it joins is only known then")
	case pastes:
		w.give(name, "what it types into a shell does not stand in the line")
	case feeds:
		w.typedKeys(name, printed(stdin))
	case reads:
		for _, f := range words {
			text := w.file(sh, f, stdin)
			if open(text) {
				w.give(name, "it reads commands that are only known when it runs")
				continue
			}
			for line := range strings.Lines(text) {
				w.nested(sh, name, table, quotedFields(line))
			}
		}
	case types:
		w.typedKeys(name, keysOf(table, args, words))
	case shells:
		for _, word := range words {
			w.code(sh.child(), word.text, unread)
			w.nested(sh, name, table, quotedFields(word.text)) // the other words of if-shell
		}
	case nested:
		if a.of != "" {
			table = a.of
		}
		for i, word := range args {
			w.nested(sh, name, table, args[i:])
			if strings.ContainsAny(word.text, " ;") {
				w.nested(sh, name, table, quotedFields(word.text))
			}
		}
	}
}

// nested follows a command of such a program that stands in another one, where it is one.
func (w *walker) nested(sh *shell, name, table string, args []field) {
	if len(args) == 0 || w.over(sh) {
		return
	}
	a, ok := terminals()[table].acts[args[0].text]
	if !ok {
		return
	}
	inner := sh.child() // it may hold others in its turn, which ends at the depth of shells
	if inner.depth > maxDepth {
		w.give(name, "its commands hold commands too deep")
		return
	}
	w.act(inner, name+" "+args[0].text, table, a, args[1:], unread)
}

func quotedFields(text string) []field { return literal(quotedWords(text, " \t\n;")) }

// operandsBehind are the words from the first on that is no flag.
func operandsBehind(values []string, args []field) []field {
	for len(args) > 0 && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		if args[0].text == "--" {
			return args[1:]
		}
		if takesNext(values, args[0].text) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return args
}

// typedKeys follows what is typed into a shell that may be any. What ends within a line is
// a part of one, which others may go on with.
func (w *walker) typedKeys(name, keys string) {
	if open(keys) {
		w.give(name, "what it types into a shell is only known when it runs")
		return
	}
	found := keyed(keys, w.effort)
	w.found = append(w.found, found...)
	w.steps += len(found)
	text, _ := terminalText(keys)
	if last := text[strings.LastIndexByte(text, '\n')+1:]; last != "" {
		w.give(name, "what it types is a part of a line, and the rest of that is not known")
	}
}

// namedKeys are keys by the names that tmux has for them.
var namedKeys = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"enter": "\r", "kpenter": "\r", "space": " ", "tab": "\t", "bspace": "\x7f", "escape": "\x1b",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	}
})

// keysOf are the keys that words stand for. What is not a text may be any.
func keysOf(table string, args, words []field) string {
	flags := args[:len(args)-len(words)]
	has := func(flag string) bool {
		return slices.ContainsFunc(flags, func(f field) bool { return f.text == flag })
	}
	if has("-H") {
		return string(anything) // by their numbers
	}
	var keys strings.Builder
	for _, word := range texts(words) {
		switch named := namedKeys()[strings.ToLower(word)]; {
		case table != "tmux": // it has escapes, and a control key is ^X
			keys.WriteString(controlKeys(unescape(word, false)))
		case has("-l"):
			keys.WriteString(word)
		case named != "":
			keys.WriteString(named)
		case len(word) == 3 && (word[:2] == "C-" || word[:2] == "c-"), len(word) == 2 && word[0] == '^':
			keys.WriteByte(word[len(word)-1] & 0x1f)
		case len(word) == 3 && word[:2] == "M-":
			keys.WriteString("\x1b" + word[2:])
		default:
			keys.WriteString(word)
		}
	}
	return keys.String()
}

// controlKeys is the text with ^M and its like as the keys that they are.
func controlKeys(text string) string {
	for c := byte('@'); c <= '_'; c++ {
		if strings.Contains(text, "^"+string(rune(c))) {
			text = strings.ReplaceAll(text, "^"+string(rune(c)), string(rune(c&0x1f)))
		}
	}
	return text
}
