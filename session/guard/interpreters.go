package guard

import (
	"slices"
	"strings"
)

// callers are functions of other languages that run a program, or shell code.
var callers = strings.Fields(`system popen exec execSync execFile execFileSync spawn spawnSync shell_exec passthru proc_open pcntl_exec
subprocess.run subprocess.call check_output check_call Popen getoutput getstatusoutput execvp execvpe execlp execv execl execute Command capture2 capture3
spawnl spawnlp spawnv spawnvp spawnvpe posix_spawn posix_spawnp create_subprocess_shell create_subprocess_exec system2 shell-command`)

// interpreters are programs of other languages whose programs stand in a word or are read.
var interpreters = strings.Fields("python perl ruby node nodejs deno bun php lua luajit pwsh powershell pypy tclsh expect osascript rscript julia emacs")

// escapes begin lines that well-known programs give to a shell.
var escapes = map[string][]string{
	"ed": {"!"}, "red": {"!"}, "ftp": {"!"}, "sftp": {"!"}, "lftp": {"!"}, "dc": {"!"}, "gnuplot": {"!", "system "},
	"gdb":  {"!", "shell ", "pipe ", "| "},
	"psql": {`\!`}, "mysql": {`\!`, "system "}, "mariadb": {`\!`, "system "},
	"sqlite3": {".shell ", ".system "}, "sqlite": {".shell ", ".system "},
	"expect": {"spawn ", "exec ", "system "}, "tclsh": {"exec "},
}

// editors are programs whose commands give what stands behind an exclamation mark to a shell.
var editors = strings.Fields("vi vim nvim view gvim vimdiff ex rvim")

// interpreter follows what the program of another language gives to a shell, where that
// stands in it. What it makes up, as all else that it does, is not looked at.
func (w *walker) interpreter(sh *shell, program string, args []field, stdin string) {
	switch {
	case slices.Contains(editors, program), slices.Contains(interpreters, program), len(escapes[program]) > 0:
	case strings.HasSuffix(program, "awk"), program == "sed":
	default:
		return
	}
	sources := texts(args)
	for _, a := range args {
		if text, ok := sh.files[resolve(sh.dir, a.text)]; ok && !strings.HasPrefix(text, copied) {
			sources = append(sources, text)
		}
		if a.output != nil {
			sources = append(sources, *a.output)
		}
	}
	if stdin != unread {
		sources = append(sources, stdin)
	}
	for _, text := range sources {
		switch {
		case slices.Contains(editors, program):
			for line := range strings.SplitSeq(text, "\n") {
				if _, code, ok := strings.Cut(line, "!"); ok {
					w.code(sh.child(), code, unread)
				}
			}
			w.calls(sh, text)
		case strings.HasSuffix(program, "awk"):
			w.calls(sh, text)
			w.pipes(sh, text)
		case program == "sed":
			w.sed(sh, text, stdin)
		case slices.Contains(interpreters, program):
			w.calls(sh, text)
			if program == "perl" || program == "ruby" || program == "php" {
				for i, code := range strings.Split(text, "`") {
					if i%2 == 1 {
						w.code(sh.child(), code, unread)
					}
				}
			}
		}
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' && program == "expect" }) {
			for _, mark := range escapes[program] {
				if code, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
					w.code(sh.child(), code, unread)
				}
			}
		}
	}
}

// calls follows the texts and lists that a program gives to functions that run them.
func (w *walker) calls(sh *shell, program string) {
	for _, function := range callers {
		for rest := program; ; {
			before, after, ok := strings.Cut(rest, function)
			if !ok {
				break
			}
			rest = after
			if before != "" && isName(before[len(before)-1:]) || after != "" && isName(after[:1]) {
				continue // a part of a name
			}
			list, tail := literals(after)
			switch {
			case len(list) == 0:
				continue
			case len(list) > 1:
				w.run(sh.child(), literal(list), unread)
			}
			text := list[0]
			if tail != "" && strings.IndexByte("),;]}\n", tail[0]) < 0 {
				text += string(anything) // something is put behind it
			}
			w.code(sh.child(), text, unread)
		}
	}
	for rest := program; ; {
		_, after, ok := strings.Cut(rest, "qx")
		if !ok {
			return
		}
		rest = after
		if text, _, ok := quotedText(after); ok {
			w.code(sh.child(), text, unread)
		}
	}
}

// literals are the texts that stand at the beginning of a call's arguments.
func literals(text string) (list []string, tail string) {
	for tail = text; len(list) < maxTurns; {
		text = strings.TrimLeft(text, " \t\n([,")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "qq"), "q")
		word, rest, ok := quotedText(text)
		if !ok {
			break
		}
		list = append(list, word)
		tail = strings.TrimLeft(rest, " \t")
		if text = tail; !strings.HasPrefix(text, ",") {
			break
		}
	}
	return list, tail
}

// quotedText is a text between quotes, or the brackets of a language that quotes so.
func quotedText(text string) (word, rest string, ok bool) {
	if text == "" {
		return "", "", false
	}
	i := strings.IndexByte("\"'`({[|/", text[0])
	if i < 0 {
		return "", "", false
	}
	return strings.Cut(text[1:], "\"'`)}]|/"[i:i+1])
}

// pipes follows the texts that a program of awk pipes to and from.
func (w *walker) pipes(sh *shell, program string) {
	words := strings.Split(program, `"`)
	for i := 1; i < len(words); i += 2 {
		before := strings.TrimRight(words[i-1], " \t&")
		after := ""
		if i+1 < len(words) {
			after = strings.TrimLeft(words[i+1], " \t")
		}
		if strings.HasSuffix(before, "|") && !strings.HasSuffix(before, "||") || strings.HasPrefix(after, "|") && !strings.HasPrefix(after, "||") {
			w.code(sh.child(), unescape(words[i], false), unread)
		}
	}
}

// sed follows the commands of sed that run others: e, and s with the flag e.
func (w *walker) sed(sh *shell, script, stdin string) {
	for line := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == '\n' || r == ';' || r == '{' || r == '}' }) {
		line = strings.TrimLeft(line, " \t0123456789,$~+!")
		if rest, ok := strings.CutPrefix(line, "/"); ok { // an address
			_, rest, _ = strings.Cut(rest, "/")
			line = strings.TrimLeft(rest, " \t!")
		}
		switch {
		case line == "e":
			w.typed(sh.child(), "sed e", stdin)
		case strings.HasPrefix(line, "e "):
			w.code(sh.child(), line[2:], unread)
		case len(line) > 2 && line[0] == 's':
			parts := strings.Split(line[2:], line[1:2])
			if len(parts) == 3 && strings.Trim(parts[2], "gIimpe0123456789") == "" && strings.Contains(parts[2], "e") {
				code := parts[1]
				if strings.ContainsAny(code, `&\`) {
					code += string(anything)
				}
				w.code(sh.child(), code, unread)
			}
		}
	}
}

// makefile follows the recipes of a makefile that the line gives to make.
func (w *walker) makefile(sh *shell, args []field, stdin string) {
	list := []field{}
	for i, a := range args {
		name, value, cut := strings.Cut(a.text, "=")
		flag, joined := strings.CutPrefix(a.text, "-f")
		switch {
		case (a.text == "-f" || a.text == "--file" || a.text == "--makefile") && i+1 < len(args):
			list = append(list, args[i+1])
		case joined && flag != "":
			list = append(list, field{text: flag, output: a.output})
		case cut && (name == "--file" || name == "--makefile"):
			list = append(list, field{text: value, output: a.output})
		case name == "--eval":
			if !cut && i+1 < len(args) {
				value = args[i+1].text
			}
			w.recipes(sh, value)
		case name == "SHELL":
			w.code(sh.child(), value, unread)
		}
	}
	if len(list) == 0 {
		list = literal([]string{"GNUmakefile", "makefile", "Makefile"})
	}
	for _, f := range list {
		if text := w.file(sh, f, stdin); text != string(outside) {
			w.recipes(sh, text)
		}
	}
}

// recipes follows the shell code of a makefile.
func (w *walker) recipes(sh *shell, text string) {
	if open(text) {
		w.give("make", "it reads rules that are only known when it runs")
	}
	for line := range strings.SplitSeq(text, "\n") {
		for rest := line; ; {
			_, after, ok := strings.Cut(rest, "$(shell ")
			if !ok {
				break
			}
			rest = after
			code, _, _ := strings.Cut(after, ")")
			w.code(sh.child(), code, unread)
		}
		recipe, ok := strings.CutPrefix(line, "\t")
		if !ok {
			_, recipe, ok = strings.Cut(line, ";")
		}
		if ok && known(recipe) {
			w.code(sh.child(), strings.ReplaceAll(strings.TrimLeft(recipe, "@-+ \t"), "$$", "$"), unread)
		}
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
