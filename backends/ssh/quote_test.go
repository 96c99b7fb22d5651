package ssh

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/connection"
	"github.com/caisson-dev/caisson/backends/tool"
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

// What a command said is told where it says the most.
func TestSaid(t *testing.T) {
	const died = "runtime: failed to create new OS thread (have 5 already; errno=11)\nruntime: may need to increase max user processes (ulimit -u)\nfatal error: newosproc\n\ngoroutine 20 gp=0x9d97e580780 m=0 mp=0x176b440 [running]:\n"
	for text, want := range map[string]string{
		"one\n two\n": "“one two”",
		"":            "it said nothing",
		died + strings.Repeat("runtime.goexit({})\n", 200):    "“runtime: failed to create new OS thread (have 5 already; errno=11) runtime: may need to increase max user processes (ulimit -u) fatal error: newosproc”",
		"panic: odd\n\ngoroutine 1 [running]:\nmain.main()\n": "“panic: odd”",
	} {
		if got := said(connection.Result{Stderr: text}); got != want {
			t.Errorf("%.60q is told as %s", text, got)
		}
	}
	if hint := explain(tool.Errorf(tool.BackendUnavailable, ""), died).Hint; !strings.Contains(hint, "ulimit -u") {
		t.Errorf("the hint is %q", hint)
	}
	if got := answered(connection.Result{Stdout: []byte(" \n"), Stderr: "no descriptors"}); got != "“no descriptors”" {
		t.Errorf("a script that could say nothing said %s", got)
	}
	if got := answered(connection.Result{Stdout: []byte("it is a link"), Stderr: "welcome"}); got != "“it is a link”" {
		t.Errorf("a script said %s", got)
	}
}
