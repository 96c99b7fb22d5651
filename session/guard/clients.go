package guard

import (
	"slices"
	"strings"
	"sync"
)

// escapes begin lines that well-known programs give to a shell. What stands behind a slash
// may be cut short, and case does not matter.
var escapes = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"ed": {"!", "r !", "w !", "W !", "e !", "E !", "r!", "w!", "e!"}, "red": {"!"}, "less": {"+!", "!"}, "more": {"+!", "!"},
		"ftp": {"!"}, "sftp": {"!"}, "lftp": {"!", "shell "}, "smbclient": {"!"}, "telnet": {"!"}, "kermit": {"!"}, "debugfs": {"!"}, "bc": {"!"},
		"mail": {"~!", "~|", "!"}, "mailx": {"~!", "~|", "!"}, "vifm": {"!", ":!"}, "ranger": {"sh/ell "}, "lf": {"$", "!", "%", "&"},
		"dc": {"!"}, "gnuplot": {"!"}, "octave": {"!", "system ", "shell_cmd "}, "matlab": {"!", "system "}, "ipython": {"!"}, "ghci": {":!"},
		"gdb":   {"!", "sh/ell ", "pip/e ", "|", "target remote |", "target extended-remote |"},
		"lldb":  {"pl/atform sh/ell ", "sh/ell ", "!"},
		"mysql": {"sys/tem ", "pager "}, "mariadb": {"sys/tem ", "pager "}, "hive": {"!sh ", "!"}, "beeline": {"!sh ", "!"},
		"sqlite3": {".sh/ell ", ".sy/stem "}, "sqlite": {".sh/ell ", ".sy/stem "}, "duckdb": {".sh/ell ", ".sy/stem "},
		"expect": {"spawn ", "exec ", "system "}, "tclsh": {"exec "}, "wish": {"exec "}, "sbt": {"!"},
		"groff": {".sy ", ".pso ", "'sy ", "'pso "}, "troff": {".sy ", ".pso "}, "nroff": {".sy ", ".pso "}, "man": {".sy ", ".pso "},
	}
})

// ended are the programs whose lines may hold several commands, with a semicolon between.
var ended = strings.Fields("expect tclsh wish mysql mariadb lftp gnuplot octave matlab smbclient vifm")

// insides begin code anywhere in such a line, in small letters and with single blanks. … is
// any text. The code ends where the quote or bracket does that ends the mark, if one does.
var insides = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"psql":  {`\!`, `\o…|`, `\g…|`, `\w…|`, "program '", "program'", "program e'", "program $$", "program \"", "`"},
		"pgcli": {`\!`}, "mysql": {`\!`, `\p `}, "mariadb": {`\!`, `\p `},
		"sqlite3": {`.import |`, `.import "|`, `.import '|`, `.o…|`, `.log "|`, `.log '|`, `.log |`, `.trace "|`, `.read |`, `.read "|`, `.read '|`, "edit(…, '", "edit(…,'"},
		"less":    {"+|"},
		"gnuplot": {`"<`, `'<`, `"|`, `'|`, "`"},
		"m4":      {"syscmd("}, "rpm": {"%("}, "rpmbuild": {"%("}, "rpmspec": {"%("}, "kak": {"%sh{"}, "gs": {"(%pipe%", "=%pipe%"}, "mutt": {"`"},
		"latex": {`\write18{`, `\input|"`}, "tclsh": {"[exec ", `open "|`, "open |"}, "wish": {"[exec ", `open "|`, "open |"}, "expect": {"[spawn ", "[exec ", `open "|`},
		"clickhouse": {"executable('"},
	}
})

// pipedNames are the programs that take a name with | before it for a command.
var pipedNames = strings.Fields("psql sqlite3 gs convert magick identify mutt gnuplot")

// sameClients are the programs whose commands are those of another one.
var sameClients = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"mailx": "mail", "sqlite": "sqlite3", "duckdb": "sqlite3", "litecli": "sqlite3", "pdflatex": "latex", "lualatex": "latex", "xelatex": "latex", "tex": "latex", "pdftex": "latex",
		"luatex": "latex", "octave-cli": "octave", "clickhouse-client": "clickhouse", "clickhouse-local": "clickhouse", "ghostscript": "gs", "neomutt": "mutt", "rmatlab": "matlab",
	}
})

// client is the program in the tables whose commands a program has.
func client(program string) string {
	if same, ok := sameClients()[program]; ok {
		return same
	}
	return program
}

// isClient reports whether something is known of the commands of a program.
func isClient(program string) bool {
	name := client(program)
	return len(escapes()[name])+len(insides()[name]) > 0 || slices.Contains(pipedNames, name)
}

// commandsOf follows the commands that a program is given in a text.
func (w *walker) commandsOf(sh *shell, program, text string) {
	name := client(program)
	w.within(sh, name, text)
	if code, ok := strings.CutPrefix(strings.TrimSpace(text), "|"); ok && slices.Contains(pipedNames, name) {
		w.code(sh.child(), code, unread)
	}
	split := func(r rune) bool { return r == '\n' || r == ';' && slices.Contains(ended, name) }
	for line := range strings.FieldsFuncSeq(text, split) {
		line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " "))
		if name == "ed" || name == "dc" {
			line = strings.TrimLeft(line, "0123456789,.;$%+- ") // addresses, and numbers
		}
		for _, mark := range escapes()[name] {
			if code, ok := behindMark(line, mark); ok {
				for name == "expect" && strings.HasPrefix(code, "-") { // flags of spawn
					_, code, _ = strings.Cut(code, " ")
				}
				w.code(sh.child(), code, unread)
			}
		}
		if keys, ok := strings.CutPrefix(line, "send "); ok && name == "expect" { // types
			if text, ok := quotedText(strings.TrimLeft(keys, "-s ")); ok {
				w.found = append(w.found, keyed(unescape(text, false), w.effort)...)
			}
		}
	}
}

// behindMark is what stands in a line behind a mark that begins it.
func behindMark(line, mark string) (code string, ok bool) {
	for {
		must, may, short := strings.Cut(mark, "/")
		if len(line) < len(must) || !strings.EqualFold(line[:len(must)], must) {
			return "", false
		}
		line = line[len(must):]
		if !short {
			return line, true
		}
		word, rest, _ := strings.Cut(may, " ")
		for word != "" && line != "" && strings.EqualFold(line[:1], word[:1]) {
			line, word = line[1:], word[1:]
		}
		if line == "" || line[0] != ' ' {
			return "", false
		}
		line, mark = strings.TrimLeft(line, " "), rest
	}
}

// within follows what stands within the lines of a program's commands and is given to a shell.
func (w *walker) within(sh *shell, program, text string) {
	for _, mark := range insides()[program] {
		if w.charge(len(text) / 4) {
			return
		}
		begin, then, some := strings.Cut(mark, "…")
		for line := range strings.SplitSeq(text, "\n") {
			plain := strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }), " ")
			for range maxTurns {
				i := strings.Index(strings.ToLower(plain), begin)
				if i < 0 {
					break
				}
				if plain = plain[i+len(begin):]; w.charge(len(plain)) {
					return
				}
				if some {
					if i = strings.Index(plain, then); i < 0 {
						break
					}
					plain = plain[i+len(then):]
				}
				code := plain
				if i := strings.LastIndexAny(mark, "'\"`([{$"); i >= 0 {
					code, plain, _ = strings.Cut(plain, closings()[mark[i]])
				}
				if mark == "+|" && code != "" {
					code = code[1:] // up to which line
				}
				if code = strings.Trim(code, "`' \""); code != "" {
					w.code(sh.child(), code, unread)
				}
			}
		}
	}
}

// closings end the code behind a mark in which such a character stands.
var closings = sync.OnceValue(func() map[byte]string {
	return map[byte]string{'[': "]", '\'': "'", '"': `"`, '`': "`", '(': ")", '{': "}", '$': "$$"}
})
