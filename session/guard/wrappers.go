package guard

import (
	"slices"
	"strings"
)

// envValues are the flags of env whose value is the next word.
var envValues = strings.Fields("-u -C -a -P --unset --chdir --argv0 --split-string")

// env follows env: settings, flags, and a line in -S.
func (w *walker) env(sh *shell, args []field, stdin string) string {
	inner := sh.fork()
	for len(args) > 0 {
		arg := args[0].text
		name, value, cut := strings.Cut(arg, "=")
		long := strings.HasPrefix(arg, "--") && len(name) > 2
		switch {
		case arg == "--":
		case long && strings.HasPrefix("--split-string", name) || splits(arg):
			line := value
			if !long {
				_, line, _ = strings.Cut(arg, "S")
				line = strings.TrimPrefix(line, "=")
			}
			if line == "" && len(args) > 1 {
				line, args = args[1].text, args[1:]
			}
			return w.env(inner, append(sh.splitString(line), args[1:]...), stdin)
		case long && cut && strings.HasPrefix("--chdir", name):
			w.changeDir(inner, []field{{text: value}})
		case takesNext(envValues, arg) && len(args) > 1:
			switch last := strings.TrimLeft(arg, "-"); {
			case long && strings.HasPrefix("unset", last), !long && strings.HasSuffix(last, "u"):
				inner.vars[args[1].text] = variable{}
			case long && strings.HasPrefix("chdir", last), !long && strings.HasSuffix(last, "C"):
				w.changeDir(inner, args[1:2])
			}
			args = args[1:]
		case strings.HasPrefix(arg, "-"):
		case cut:
			w.setting(inner, name, value)
		default:
			clear(inner.funcs)
			return w.run(inner, args, stdin)
		}
		args = args[1:]
	}
	return string(outside)
}

// setting follows a variable that a program is given, and what runs in it.
func (w *walker) setting(sh *shell, name, value string) {
	if function, ok := strings.CutPrefix(name, "BASH_FUNC_"); ok {
		w.code(sh.child(), strings.TrimRight(function, "%()")+value, unread) // a function of every bash
	}
	if !isName(name) {
		return
	}
	sh.set(name, value)
	sh.exported[name] = true
	w.codeSetting(sh, name, value)
}

// splits reports whether a flag of env is, or ends in, -S.
func splits(arg string) bool {
	before, _, ok := strings.Cut(arg, "S")
	return ok && strings.HasPrefix(before, "-") && strings.Trim(before[1:], "iv0") == ""
}

// splitString is the line of env -S in words.
func (s *shell) splitString(line string) []field {
	line, _, _ = strings.Cut(line, `\c`)
	line = strings.NewReplacer(`\_`, " ", `\t`, " ", `\n`, " ", `\v`, " ", `\f`, " ", `\r`, " ").Replace(line)
	for {
		before, rest, ok := strings.Cut(line, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			break
		}
		line = before + s.lookup(name) + after
		if len(line) > maxText {
			return []field{{text: string(anything), many: true}}
		}
	}
	return literal(quotedWords(line, " \t\n"))
}

// xargsValues are the flags of xargs whose value is the next word.
var xargsValues = strings.Fields("-I -J -R -S -n -P -L -d -E -s -a --max-args --max-procs --delimiter --max-chars --arg-file --process-slot-var")

// xargs follows the command of xargs with the words that are piped into it. From
// a text that is not known come names, and no flags.
func (w *walker) xargs(sh *shell, args []field, stdin string) string {
	replace, between, parts, raw := "", "", false, false
	for len(args) > 0 && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		arg := args[0].text
		if arg == "--" {
			args = args[1:]
			break
		}
		name, value, cut := strings.Cut(arg, "=")
		flag, next := byte(0), takesNext(xargsValues, arg) && len(args) > 1
		switch {
		case !strings.HasPrefix(arg, "--"):
			if flag = arg[1]; next {
				flag = arg[len(arg)-1]
			}
			for flag != 0 && strings.IndexByte("0rtxpo", flag) >= 0 && len(arg) > 2 && !next { // -rn1
				raw = raw || flag == '0'
				arg = "-" + arg[2:]
				flag = arg[1]
			}
			value = arg[2:]
			raw = raw || !next && flag == '0' || next && strings.Contains(arg, "0")
		case len(name) > 2:
			for long, short := range map[string]byte{
				"--arg-file": 'a', "--delimiter": 'd', "--null": '0', "--replace": 'i', "--max-args": 'n', "--max-lines": 'l', "--max-chars": 's',
			} {
				if strings.HasPrefix(long, name) {
					flag = short
				}
			}
			raw = raw || flag == '0'
		}
		given := field{text: value, output: args[0].output}
		if next {
			given, args = args[1], args[1:]
		}
		switch flag {
		case 'I', 'J':
			replace = given.text
		case 'i':
			if replace = given.text; replace == "" && !cut {
				replace = "{}"
			}
		case 'a':
			stdin = w.arguments(sh, given, stdin)
		case 'd':
			between, raw = unescape(given.text, false), true
		case 'n', 'L', 'l', 's', 'R':
			parts = true
		}
		args = args[1:]
	}
	words := piped(stdin, between, raw, replace != "")
	if stdin == string(anything) && (len(args) == 0 || replace != "" && strings.Contains(args[0].text, replace)) {
		words[0].text = string(anything) // a command word from there may be any
	}
	if len(args) == 0 {
		return strings.Join(texts(words), " ") + "\n"
	}
	if len(words) > maxTurns && (parts || replace != "") {
		words = []field{{text: string(anything), many: true}}
	}
	if replace == "" {
		out := w.run(sh.fork(), append(slices.Clone(args), words...), stdin)
		for i := 1; parts && i < len(words); i++ { // which may begin anywhere
			w.run(sh.fork(), append(slices.Clone(args), words[i:]...), stdin)
			out = string(anything)
		}
		return out
	}
	for _, word := range words {
		w.run(sh.fork(), replaced(args, replace, word), string(anything))
	}
	return string(anything)
}

// piped are the words of a text as xargs takes them: apart by blanks and with their quotes
// taken out, unless it is raw, and apart by lines where they replace a mark.
func piped(text, between string, raw, lines bool) []field {
	if text == string(anything) {
		return []field{{text: string(outside), many: true}}
	}
	var list []string
	switch {
	case raw:
		list = strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == 0 || strings.ContainsRune(between, r) })
	case lines:
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == 0 }) {
			list = append(list, strings.Join(quotedWords(strings.TrimLeft(line, " \t"), ""), ""))
		}
	default:
		list = quotedWords(text, " \t\n\x00")
	}
	words := make([]field, len(list))
	for i, word := range list {
		words[i] = field{text: word, many: !known(word)}
	}
	return words
}

// arguments is the text of a file that xargs reads its words from. A file that was there
// before is taken to hold names, as what is piped into xargs is.
func (w *walker) arguments(sh *shell, f field, stdin string) string {
	if text, ok := f.stream(stdin); ok {
		return text
	}
	text := sh.content(f.text)
	if text == string(outside) || strings.HasPrefix(text, copied) {
		return string(anything)
	}
	return text
}
