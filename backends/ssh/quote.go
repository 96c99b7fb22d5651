package ssh

import (
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A command reaches the machine as one line for the account's own shell, which
// may be any: a POSIX one, csh, fish. quote writes a word so that all of those
// read it alike: in single quotes, but for the characters that one of them would
// read something into even there, which stand outside and behind a backslash. A
// line break has no such form.
func quote(word string) (string, error) {
	if strings.ContainsAny(word, "\n\r\x00") {
		return "", tool.Errorf(tool.ConfigInvalid, "%q holds a line break, which cannot be given to every remote shell", word)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word, nil
	}
	var b strings.Builder
	inside := false
	for _, c := range []byte(word) {
		outside := c == '\'' || c == '\\' || c == '!'
		if inside == outside {
			b.WriteByte('\'')
			inside = !inside
		}
		if outside {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	if inside {
		b.WriteByte('\'')
	}
	if b.Len() == 0 {
		return "''", nil
	}
	return b.String(), nil
}

// special reports whether some shell could read something into a character.
func special(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("/._-+:,@=", c)
}

// commandLine is a line that replaces the account's shell by a POSIX one, which
// runs the script with the arguments as $1 and on. A script has no line breaks.
func commandLine(script string, args ...string) (string, error) {
	line := "exec"
	for _, word := range append([]string{"/bin/sh", "-c", script, "caisson"}, args...) {
		quoted, err := quote(word)
		if err != nil {
			return "", err
		}
		line += " " + quoted
	}
	return line, nil
}

// runProgram is a script that runs the program $1 with the other arguments. That
// it is started by a POSIX shell makes its exit status tell why it was not.
const runProgram = `exec "$@"`
