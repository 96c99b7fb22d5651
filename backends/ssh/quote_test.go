package ssh

import (
	"os/exec"
	"strings"
	"testing"
)

// shells are those that a machine's account may have, where they are installed.
func shells(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "csh", "tcsh", "fish", "ksh"} {
		if path, err := exec.LookPath(shell); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Fatal("there is no shell")
	}
	return found
}

func TestQuote(t *testing.T) {
	words := []string{
		"", "plain", "a b", "it's", `back\slash`, `\`, `'`, `''`, "!bang", "a!'b", "$HOME", "`id`", "$(id)", "*", "~", "~root",
		`"double"`, "a;b", "a&b", "a|b", "<>", "{a,b}", "[ab]", "#no comment", "%1", "^x^y", "ü€", "\t", "-n", "a=b", `\n`, "a\\'b",
	}
	for _, shell := range shells(t) {
		line, err := commandLine(`printf "%s|" "$@"`, words...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(shell, "-c", line).CombinedOutput()
		if want := strings.Join(words, "|") + "|"; err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s\n%s", shell, err, out, want)
		}
	}
	for _, word := range []string{"a\nb", "a\rb", "a\x00b"} {
		if line, err := commandLine(runProgram, word); err == nil {
			t.Errorf("%q became %s", word, line)
		}
	}
}

// The scripts hold nothing that one of the shells reads otherwise.
func TestScripts(t *testing.T) {
	for _, shell := range shells(t) {
		line, err := commandLine(lookScript, "the-mark")
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(shell, "-c", line).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "the-mark\nLinux\n") {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
		if line, err = commandLine(prepareScript, "the-mark", "/", "/tmp"); err != nil {
			t.Fatal(err)
		}
		out, err = exec.Command(shell, "-c", line).CombinedOutput()
		if !strings.HasPrefix(string(out), "the-mark\n") || strings.Contains(string(out), "not found") {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}
