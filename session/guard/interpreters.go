package guard

import (
	"slices"
	"strings"
)

// interpreters are programs of other languages whose programs stand in a word or are read.
var interpreters = strings.Fields("python perl ruby node nodejs deno bun php lua luajit pwsh powershell pypy tclsh expect osascript rscript julia emacs elixir")

// editors are programs whose commands give what stands behind an exclamation mark to a shell.
var editors = strings.Fields("vi vim nvim view gvim vimdiff ex rvim")

// inline are the flags of interpreters whose next word is a program, separated by spaces.
var inline = map[string]string{
	"python": "-c", "pypy": "-c", "perl": "-e -E", "ruby": "-e", "node": "-e -p --eval --print", "nodejs": "-e -p --eval --print", "bun": "-e -p --eval --print",
	"deno": "eval", "php": "-r", "lua": "-e", "luajit": "-e", "rscript": "-e", "julia": "-e", "osascript": "-e", "expect": "-c", "elixir": "-e",
	"emacs": "--eval --execute",
}

// inlined notes a program in a word of which nothing is known.
func (w *walker) inlined(program string, args []field) {
	unknown := func(f field) bool { return f.text != "" && strings.Trim(f.text, marks+" \t\n") == "" }
	flags := strings.Fields(inline[program])
	if strings.HasSuffix(program, "awk") {
		for len(args) > 1 && len(args[0].text) > 1 && args[0].text[0] == '-' {
			if slices.Contains([]string{"-f", "--file"}, args[0].text) {
				return
			}
			if slices.Contains([]string{"-F", "-v", "--field-separator", "--assign"}, args[0].text) {
				args = args[1:]
			}
			args = args[1:]
		}
		if len(args) > 0 && unknown(args[0]) {
			w.give(program+" …", "its program is only known when it runs")
		}
		return
	}
	for i := 1; i < len(args); i++ {
		if takesNext(flags, args[i-1].text) && unknown(args[i]) {
			w.give(program+" "+args[i-1].text+" …", "its program is only known when it runs")
		}
	}
}

// interpreter follows what the program of another language gives to a shell, where that
// stands in it. What it makes up, as all else that it does, is not looked at.
func (w *walker) interpreter(sh *shell, program string, args []field, stdin string) {
	switch {
	case slices.Contains(editors, program), speaks(program) != "", isClient(program):
	case strings.HasSuffix(program, "awk"), program == "sed":
	default:
		return
	}
	w.inlined(program, args)
	sources := texts(args)
	for i, a := range args {
		if text, ok := sh.files[resolve(sh.dir, a.text)]; ok && !strings.HasPrefix(text, copied) {
			sources = append(sources, text)
		}
		if a.output != nil {
			sources = append(sources, *a.output)
		}
		if _, value, ok := strings.Cut(a.text, "="); ok && (strings.HasPrefix(a.text, "--") || strings.HasPrefix(value, "|")) {
			sources = append(sources, value)
		}
		if isClient(program) && len(sh.files) > 0 && len(a.text) <= maxText {
			for _, word := range strings.Fields(a.text) { // that it reads in its turn
				if text := sh.files[resolve(sh.dir, word)]; text != "" && word != a.text && !strings.HasPrefix(text, copied) && len(sources) < maxTurns {
					sources = append(sources, text)
				}
			}
		}
		if slices.Contains(editors, program) && (strings.HasPrefix(a.text, "+") || i > 0 && slices.Contains([]string{"-c", "--cmd"}, args[i-1].text)) {
			w.terminals(sh, program, strings.TrimPrefix(a.text, "+"))
		}
	}
	for _, name := range []string{"VIMINIT", "EXINIT"} { // the first commands of an editor
		if v, ok := sh.vars[name]; ok && slices.Contains(editors, program) {
			sources = append(sources, v.list...)
		}
	}
	if stdin != unread {
		sources = append(sources, stdin)
	}
	scripts := sedScripts(program, args, sources)
	for _, text := range sources {
		if w.charge(len(text)) {
			return
		}
		if !slices.Contains(editors, program) {
			w.authors(sh, text)
		}
		switch {
		case slices.Contains(editors, program):
			w.editor(sh, text)
		case strings.HasSuffix(program, "awk"):
			w.calls(sh, languages()["awk"], text)
			w.pipes(sh, text)
		case program == "sed":
			if scripts[text] {
				w.sed(sh, text, stdin)
			}
		case speaks(program) != "":
			w.calls(sh, languages()[speaks(program)], text)
		}
		w.commandsOf(sh, program, text)
	}
}

// editor follows commands of an editor that give what stands behind an exclamation mark to a
// shell, and functions that do.
func (w *walker) editor(sh *shell, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if _, code, ok := strings.Cut(line, "!"); ok {
			w.code(sh.child(), code, unread)
		}
	}
	w.calls(sh, languages()["vim"], text)
}

// quotedText is a text between quotes, or the brackets of a language that quotes so.
func quotedText(text string) (word string, ok bool) {
	if text == "" {
		return "", false
	}
	i := strings.IndexByte("\"'`({[|/", text[0])
	if i < 0 {
		return "", false
	}
	word, _, ok = strings.Cut(text[1:], "\"'`)}]|/"[i:i+1])
	return word, ok
}

// terminals follows the commands of an editor that open a shell, or run a command in one.
func (w *walker) terminals(sh *shell, program, text string) {
	words := strings.Fields(strings.TrimLeft(text, ": "))
	for i, word := range words {
		switch word {
		case "sh", "shell", "ter", "term", "terminal":
			if i+1 < len(words) {
				w.code(sh.child(), strings.Join(words[i+1:], " "), unread)
			} else {
				w.give(program+" "+word, "what is typed into the shell that it opens is only known then")
			}
			return
		case "silent", "silent!", "tab", "vert", "vertical", "botright", "belowright", "topleft":
		default:
			return
		}
	}
}

// pipes follows what a program of awk pipes to and from: texts, and what it makes of them.
func (w *walker) pipes(sh *shell, program string) {
	s := callScanner{text: program}
	statement, operand := 0, 0 // where they begin
	for pipes := 0; s.at < len(program); {
		if s.quoted() {
			continue
		}
		rest := program[s.at+1:]
		switch c := program[s.at]; c {
		case '/':
			if before := strings.TrimRight(program[:s.at], " \t\n"); before == "" || strings.IndexByte("(,!~&|{};", before[len(before)-1]) >= 0 {
				if end := strings.IndexByte(rest, '/'); end >= 0 { // a pattern
					s.at += end + 1
				}
			}
		case '{', '}', ';', '\n':
			statement, operand = s.at+1, s.at+1
		case '(', '=', ',', '!', '&':
			operand = s.at + 1
		case '|':
			if strings.HasPrefix(rest, "|") {
				s.at++
				operand = s.at + 1
				break
			}
			if pipes++; pipes > maxTurns {
				w.give("awk", "more pipes stand in its program than are followed")
				return
			}
			to := strings.TrimLeft(strings.TrimPrefix(rest, "&"), " \t")
			switch {
			case strings.HasPrefix(to, "getline"):
				w.operand(sh, program[operand:s.at])
			case strings.Contains(program[statement:s.at], "print"):
				w.operand(sh, to)
			}
		}
		s.at++
	}
}

// operand follows the command of a pipe of awk.
func (w *walker) operand(sh *shell, text string) {
	s := callScanner{text: text[:min(len(text), maxCall)]}
	s.scan()
	if len(s.fields) > 0 {
		w.code(sh.child(), s.fields[len(s.fields)-1].text, unread)
	}
}

// sedScripts are those of the texts that sed is given that are scripts, and not names of files.
func sedScripts(program string, args []field, sources []string) map[string]bool {
	if program != "sed" {
		return nil
	}
	all := map[string]bool{}
	for _, f := range named(args, "-e", "--expression") {
		all[f.text] = true
	}
	for i := 0; i < len(args) && len(all) == 0; i++ {
		if text := args[i].text; !strings.HasPrefix(text, "-") {
			all[text] = true
		}
	}
	for _, text := range sources[len(args):] { // of files and of the input
		all[text] = true
	}
	return all
}

// sed follows the commands of sed that run others: e, and s with the flag e; and the files
// that w writes.
func (w *walker) sed(sh *shell, script, stdin string) {
	for line := range strings.SplitSeq(script, "\n") {
		for rest := line; rest != ""; {
			piece := behindAddress(rest)
			switch {
			case piece == "e":
				w.typed(sh.child(), "sed e", stdin)
			case strings.HasPrefix(piece, "e ") || strings.HasPrefix(piece, "e") && strings.Contains(line, " "):
				w.code(sh.child(), piece[1:], unread)
			case strings.HasPrefix(piece, "w "):
				w.wrote(sh, strings.TrimSpace(piece[2:]), string(anything))
			case len(piece) > 2 && piece[0] == 's':
				parts := strings.SplitN(piece[2:], piece[1:2], 4)
				if len(parts) < 3 {
					break
				}
				flags, file, writes := strings.Cut(parts[2], "w ")
				flags, _, _ = strings.Cut(flags, ";")
				if writes {
					w.wrote(sh, strings.TrimSpace(file), string(anything))
				}
				if flags = strings.TrimRight(flags, " }"); strings.Trim(flags, "gIimpe0123456789") == "" && strings.Contains(flags, "e") {
					code := parts[1]
					if strings.ContainsAny(code, `&\`) {
						code += string(anything)
					}
					w.code(sh.child(), code, unread)
				}
			}
			i := strings.IndexAny(rest, ";{}")
			if i < 0 {
				break
			}
			rest = rest[i+1:]
		}
	}
}

// behindAddress is a command of sed without the address before it.
func behindAddress(text string) string {
	for {
		text = strings.TrimLeft(text, " \t0123456789,$~+!IM")
		var closing string
		switch {
		case strings.HasPrefix(text, "/"):
			closing = "/"
		case len(text) > 1 && text[0] == '\\':
			text, closing = text[1:], text[1:2]
		default:
			return text
		}
		_, rest, ok := strings.Cut(text[1:], closing)
		if !ok {
			return ""
		}
		text = rest
	}
}

// edited forgets what is in the files of the line that a program changes.
func (s *shell) edited(program string, args []field) {
	inPlace := slices.ContainsFunc(args, func(f field) bool {
		return strings.HasPrefix(f.text, "-") && !strings.HasPrefix(f.text, "--") && strings.Contains(f.text, "i") || strings.HasPrefix(f.text, "--in-place") || f.text == "inplace"
	})
	switch program {
	case "sed", "perl", "ruby", "awk", "gawk":
		if !inPlace {
			return
		}
	case "ed", "ex", "vi", "vim", "nvim", "patch", "sponge", "truncate", "split", "python", "node", "sort":
	default:
		return
	}
	for _, a := range args {
		if name := resolve(s.dir, a.text); s.files[name] != "" {
			s.files[name] = string(anything)
		}
	}
}
