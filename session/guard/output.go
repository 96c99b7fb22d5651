package guard

import (
	"slices"
	"strings"
)

// output is what well-known programs print.
func output(sh *shell, program string, args []field, stdin string) string {
	words := texts(args)
	plain := func() []string {
		return slices.DeleteFunc(slices.Clone(words), func(s string) bool { return strings.HasPrefix(s, "-") })
	}
	switch program {
	case "echo":
		return echo(words)
	case "printf":
		return printf(words)
	case "true", ":", "false", "test", "[", "mkdir", "rm", "touch", "chmod", "sleep", "export", "exit", "return", "break", "continue", "wait", "rmdir":
		return ""
	case "pwd":
		return sh.dir + "\n"
	case "mktemp":
		return string(below) + "\n"
	case "cat", "head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "shuf", "tac":
		if program == "rg" || slices.ContainsFunc(words, func(s string) bool {
			return strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "--") && strings.Contains(s, "l")
		}) && strings.HasSuffix(program, "grep") {
			return "./" + string(outside)
		}
		if files := plain(); program == "cat" && len(files) > 0 {
			out := ""
			for _, f := range files {
				text := sh.content(f)
				if text == string(outside) {
					text = string(anything) // now it is what is in it that counts
				}
				out += text
			}
			return limited(out)
		}
		if stdin == unread {
			return string(anything)
		}
		return stdin
	case "ls":
		for _, f := range plain() {
			if !known(f) || strings.HasPrefix(f, "/") && slices.ContainsFunc(words, func(s string) bool { return strings.HasPrefix(s, "-") && strings.Contains(s, "d") }) {
				return strings.Join(plain(), "\n") + "\n"
			}
		}
		return "./" + string(outside)
	case "dirname":
		return string(someDir) + "\n"
	case "basename":
		if p := plain(); len(p) == 1 && known(p[0]) {
			return base(p[0]) + "\n"
		}
	case "realpath", "readlink":
		if p := plain(); len(p) == 1 && !open(p[0]) {
			return resolve(sh.dir, p[0]) + "\n"
		}
	case "date", "whoami", "id", "uname", "hostname", "nproc", "seq", "wc", "pgrep", "pidof", "lsof", "arch", "tty", "stat", "du":
		return string(outside)
	case "yes":
		return strings.Join(words, " ") + "\n"
	}
	return string(anything)
}

func echo(words []string) string {
	newline, escapes := "\n", false
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], "neE") == "" {
		if strings.Contains(words[0], "n") {
			newline = ""
		}
		if strings.Contains(words[0], "e") {
			escapes = true
		}
		words = words[1:]
	}
	text := strings.Join(words, " ")
	if escapes {
		text = unescape(text, false)
	}
	return limited(text + newline)
}

// printf is what a format with %s, %b and %% makes of its words.
func printf(words []string) string {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	format, rest := unescape(words[0], false), words[1:]
	var out strings.Builder
	for {
		before := len(rest)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 >= len(format) {
				out.WriteByte(format[i])
				continue
			}
			i++
			word := ""
			if len(rest) > 0 && format[i] != '%' {
				word, rest = rest[0], rest[1:]
			}
			switch format[i] {
			case '%':
				out.WriteByte('%')
			case 's':
				out.WriteString(word)
			case 'b':
				out.WriteString(unescape(word, false))
			case 'd', 'i':
				out.WriteString(word)
			default:
				return string(anything)
			}
		}
		if len(rest) == 0 || len(rest) == before || out.Len() > maxText {
			break
		}
	}
	return limited(out.String())
}
