package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// shellCall is a call of bash in /workspace.
func shellCall(line string) Call {
	raw, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		panic(err)
	}
	return Call{ID: "c1", Tool: "shell.bash", Dir: "/workspace", Arguments: raw}
}

// deny is a policy of rules that deny commands.
func deny(patterns ...string) Policy {
	var p Policy
	for _, text := range patterns {
		p.Rules = append(p.Rules, Rule{Tools: []string{"shell.*"}, Match: map[string]string{"command": text}, Action: Deny})
	}
	return p
}

func judge(t testing.TB, p Policy, c Call) verdict {
	t.Helper()
	compiled, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.judge(&subject{call: c})
}

// letters are the verdicts of the three rules in one word.
func letters(t testing.TB, line string) string {
	return lettersOf(t, line, "rm -rf /*", "curl", "git push")
}

// lettersOf are the verdicts of rules that deny these commands in one word.
func lettersOf(t testing.TB, line string, patterns ...string) string {
	var all strings.Builder
	for _, pattern := range patterns {
		switch judge(t, deny(pattern), shellCall(line)).action {
		case Deny:
			all.WriteByte('D')
		case Confirm:
			all.WriteByte('C')
		default:
			all.WriteByte('.')
		}
	}
	return all.String()
}

// lines reads a file of shell lines.
func lines(t testing.TB, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// spelled is a line as it is run.
func spelled(line string) string {
	if text, err := strconv.Unquote(line); err == nil && line[0] == '"' && strings.Contains(text, "\n") {
		return text
	}
	return line
}

func TestEvasions(t *testing.T) {
	all := lines(t, "testdata/evasions.txt")
	if len(all) < 150 {
		t.Fatalf("only %d lines", len(all))
	}
	for _, line := range all {
		want, text, _ := strings.Cut(line, "  ")
		if got := letters(t, spelled(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Rules about paths see them wherever a line names them.
func TestPaths(t *testing.T) {
	all := lines(t, "testdata/paths.txt")
	if len(all) < 300 {
		t.Fatalf("only %d lines", len(all))
	}
	for _, line := range all {
		want, text, _ := strings.Cut(line, "  ")
		if got := lettersOf(t, spelled(text), "* ./.env", "* ~/.ssh/**", "cat ./.env"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestOrdinaryLines(t *testing.T) {
	all := lines(t, "testdata/ordinary.txt")
	if len(all) < 100 {
		t.Fatalf("only %d lines", len(all))
	}
	for _, line := range all {
		if got := letters(t, spelled(line)); got != "..." {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// What no shell runs is seen as well.
func TestOtherCommands(t *testing.T) {
	for _, c := range []struct {
		tool, arguments string
		files           map[string][]byte
		want            Action
	}{
		{"process.start", `{"argv":["rm","-rf","/"]}`, nil, Deny},
		{"process.start", `{"argv":["sudo","sh","-c","rm -rf /"]}`, nil, Deny},
		{"process.start", `{"argv":["rm","-rf","$x"]}`, nil, Allow},         // no shell expands it
		{"process.start", `{"argv":["rm","-rf","*"],"cwd":"/"}`, nil, Deny}, // a file of that name
		{"process.start", `{"command":"rm -rf *","cwd":"/"}`, nil, Deny},
		{"process.start", `{"command":"rm -rf etc","cwd":".."}`, nil, Deny},
		{"process.start", `{"command":"$X -rf /","env":{"X":"rm"}}`, nil, Deny},
		{"shell.job", `{"script":{"interpreter":"bash","source":"ls\nrm -rf /"}}`, nil, Deny},
		{"shell.job", `{"script":{"interpreter":"/usr/bin/env -S bash -e","source":"rm -rf /"}}`, nil, Deny},
		{"shell.job", `{"script":{"interpreter":"python3","source":"print('rm -rf /')"}}`, nil, Allow},
		{"shell.job", `{"script":{"interpreter":"python3","source":"import os\nos.system('rm -rf /')"}}`, nil, Deny},
		{"shell.job", `{"script":{"interpreter":"make -f","source":"x:;rm -rf /"}}`, nil, Deny},
		{"process.start", `{"argv":["git","log"],"env":{"GIT_PAGER":"rm -rf /"}}`, nil, Deny},
		{"process.start", `{"argv":["bash","-c","ls"],"env":{"BASH_FUNC_ls%%":"() { rm -rf /; }"}}`, nil, Deny},
		{"shell.job", `{"argv":["sh"],"stdin":"rm -rf /"}`, nil, Deny},
		{"shell.job", `{"argv":["sh","run.sh"]}`, map[string][]byte{"run.sh": []byte("rm -rf /")}, Deny},
		{"shell.job", `{"argv":["./run.sh"]}`, map[string][]byte{"run.sh": []byte("echo fine")}, Allow},
		{"shell.job", `{"argv":["sh","run.sh"]}`, map[string][]byte{"run.sh": make([]byte, maxText+1)}, Confirm},
		{"git.git", `{"subcommand":"rebase","args":["--exec","rm -rf /","main"]}`, nil, Deny},
		{"git.git", `{"subcommand":"status"}`, nil, Allow},
		{"process.process", `{"action":"write","process_id":"p","input":"rm -rf /\n"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"y\n"}`, nil, Allow},
		{"process.process", `{"action":"write","process_id":"p","input":"print(')"}`, nil, Allow},
		{"process.process", `{"action":"write","process_id":"p","input":"ls\rrm -rf /\r"}`, nil, Deny}, // as a terminal takes it
		{"process.process", `{"action":"write","process_id":"p","input":"rx\u007fm -rf /\r"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"ls \u0015rm -rf /\r"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"(\u0003rm -rf /\r"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"rm x y\u0017\u0017-rf /\r"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"rm -rf /\u0015ls"}`, nil, Deny}, // as a pipe does
		{"process.process", `{"action":"write","process_id":"p","input":"\u001b[200~rm -rf /\u001b[201~\r"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"m -rf /\u0001r\r"}`, nil, Confirm},
		{"process.process", `{"action":"write","process_id":"p","input":"m -rf /\u001b[Hr\r"}`, nil, Confirm},
		{"process.process", `{"action":"write","process_id":"p","input":"\u0012push\r"}`, nil, Confirm},
		{"process.process", `{"action":"write","process_id":"p","input":"\u001b[B\u001b[B\r"}`, nil, Allow}, // a menu
		{"process.process", `{"action":"write","process_id":"p","input":"\u001b:wq\r"}`, nil, Allow},
		{"process.process", `{"action":"write","process_id":"p","input":"fi )\nrm -rf /\n"}`, nil, Deny}, // a line behind one that is none
		{"process.process", `{"action":"write","process_id":"p","input":":!rm -rf /\r"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"os.system('rm -rf /')\n"}`, nil, Deny},
		{"process.process", `{"action":"write","process_id":"p","input":"` + strings.Repeat("x ", maxLine) + `"}`, nil, Confirm},
		{"process.start", `{"argv":["python3","-i"]}`, nil, Confirm},
		{"process.start", `{"argv":["python3","--version"]}`, nil, Allow},
		{"process.start", `{"argv":["script"]}`, nil, Confirm},
		{"process.start", `{"argv":["unshare","-r"]}`, nil, Confirm},
		{"process.start", `{"argv":["nix-shell","-p","jq","--run","jq ."]}`, nil, Allow},
		{"plugins.run", `{"command":["rm","-rf","/"]}`, nil, Deny},
		{"shell.bash", `{"command":"ls","command":"rm -rf /"}`, nil, Confirm},
		{"shell.bash", `["rm -rf /"]`, nil, Confirm},
		{"file.read_file", `{"path":"rm -rf /"}`, nil, Allow},
	} {
		p := deny("rm -rf /*")
		p.Rules[0].Tools = []string{"*"}
		call := Call{Tool: c.tool, Dir: "/workspace", Arguments: json.RawMessage(c.arguments), Files: c.files}
		if got := judge(t, p, call); got.action != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.arguments, got.action, c.want)
		}
	}
}

// A line that would take long to follow is given up soon, and a person is asked.
func TestLinesAreBounded(t *testing.T) {
	var variables strings.Builder
	for i := range 4500 {
		fmt.Fprintf(&variables, "v%d= ", i)
	}
	// Each of these links leads from a name that begins with those of all the others.
	var links, chain, files, dirs, words strings.Builder
	nested := "a" + strings.Repeat("/a", 16)
	for i := range 16 {
		fmt.Fprintf(&links, "ln -s b a%s;", strings.Repeat("/a", i))
		fmt.Fprintf(&dirs, " -C d%d", i)
	}
	for i := range 40 {
		fmt.Fprintf(&chain, "ln -s %d %d;", i, i+1)
	}
	for i := range 10_000 {
		fmt.Fprintf(&words, " %d", i)
	}
	many := strings.Repeat(" x{1..250}", 150)
	for i := range 1500 {
		fmt.Fprintf(&files, "echo x>%d.py;", i)
	}
	for name, line := range map[string]string{
		"shells":    variables.String() + ";" + strings.Repeat("(:);", 3000),
		"branches":  variables.String() + ";" + strings.Repeat("if :;then :;fi;", 1300),
		"ands":      variables.String() + ";" + strings.Repeat(":&&", 3900) + ":",
		"aliases":   "alias " + variables.String() + ";" + strings.Repeat("(:);", 3000),
		"texts":     "x=aaaaaaaaaaaaaaa; " + strings.Repeat("x=$x$x; ", 9) + strings.Repeat(": $x$x $x; ", 1000),
		"long":      "echo " + strings.Repeat("x", maxLine),
		"deep":      strings.Repeat("(", 50_000),
		"nested":    strings.Repeat("$(", 5000) + strings.Repeat(")", 5000),
		"quoted":    strings.Repeat(`"$(`, 3000),
		"braces":    "echo {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}; " + strings.Repeat("{a,b}", 40),
		"doubling":  "x=aaaaaaaaaaaaaaaa; " + strings.Repeat("x=$x$x; ", 200) + "$x",
		"recursive": "f() { f; f; }; f",
		"loops":     strings.Repeat("for i in {1..60}; do ", 8) + "echo $i; " + strings.Repeat("done; ", 8),
		"evals":     "x='eval \"$x\"; eval \"$x\"'; eval \"$x\"",
		"echoes":    strings.Repeat("echo aaaaaaaaaaaaaaaaaaaaaaaaaaaa; ", 1500) + "$(cat x)",
		"lists":     "a=(" + strings.Repeat("b ", 5000) + "); " + strings.Repeat(`a+=("${a[@]}"); `, 30) + `"${a[@]}"`,
		"binds":     "tmux " + strings.Repeat("bind 'bind bind' ", 4000),
		"keys":      strings.Repeat("tmux send-keys 'x=x;$x' Enter;", 2000),
		"awk":       "awk '{print " + strings.Repeat("|x", 30_000) + "}'",
		"calls":     "python3 -c '" + strings.Repeat("os.system(x", 5000) + "'",
		"unclosed":  "node -e '" + strings.Repeat("exec(\"", 8000) + "'",
		"ticks":     "perl -e '" + strings.Repeat("`x`", 20_000) + "'",
		"padded":    "python3 -c '" + strings.Repeat(" ", maxText) + "import os'",
		"formats":   "tmux set -g status " + strings.Repeat("'#(' ", 10_000),
		"links":     links.String() + "rm -r" + strings.Repeat(" "+nested+"/{1..250}", 150),
		"chain":     chain.String() + "rm -r" + strings.Repeat(" 40/{1..250}", 150) + "; $x",
		"linked":    links.String() + "tar c" + dirs.String() + strings.Repeat(" "+nested+"/{1..250}", 150),
		"files":     files.String() + strings.Repeat("python3 a;", 2500),
		"loaded":    "printf '" + strings.Repeat(`os.system("`+strings.Repeat("a;", 100)+`")\n`, 60) + "' > conftest.py; pytest; ls",
		"commands":  "vim " + strings.Repeat("-c 'set makeprg=a b c d e f' ", 2000) + "; $x",
		"places":    "tar -c" + dirs.String() + many + "; $x",
		"arguments": "rm -r" + words.String() + "; $x",
		"wrapped":   strings.Repeat("env ", 90) + "rm -r" + many,
		"empty":     "set -- '' ''; " + strings.Repeat(`set -- "$@" "$@"; `, 40) + `rm -r "$@"`,
		"joined":    "set --" + many + "; echo " + strings.Repeat(`"$@$@$@$@"`, 1000),
		"options":   "docker" + strings.Repeat(" a{1..250}=b", 150) + "; npm" + strings.Repeat(" shell", 8000) + "; $x",
		"makes":     "printf 'A=" + strings.Repeat("x", 8000) + `\n` + strings.Repeat(`B:=$(A)$(A)\n`, 500) + "' > Makefile; " + strings.Repeat("make;", 4000),
		"schedules": "echo '" + strings.Repeat("a=b\n", 3000) + "' > a; " + strings.Repeat("crontab a;", 3000) + "$x",
		"descent":   strings.Repeat("cd x y;", 6000),
		"slices":    "x='" + strings.Repeat("a", 16_000) + "'; : " + strings.Repeat("${x:1:1}", 5000),
		"flags":     "wget " + strings.Repeat("-Fa=@b,c=d:e ", 4000) + "; $x",
		"makefile":  "make --eval='A=xxxxxxxxxxxxxxxx\n" + strings.Repeat("A:=$(A)$(A)\n", 100) + strings.Repeat("a:;$(A)\n", 5000) + "'; $x",
		"includes":  "printf 'include a\\ninclude a\\n' > a; make -f a; $x",
		"itself":    "printf '#!./b\\n' > a; printf '#!./a\\n' > b; ./a",
		"images":    "docker build - <<< '" + strings.Repeat("RUN $x\n", 9000) + "'",
		"clients":   "psql -c '" + strings.Repeat("`$x", 20_000) + "'",
		"settings":  strings.Repeat("PAGER=$x ", 7000) + "$x",
		"globs":     "rm -rf /" + strings.Repeat("*a", 9000),
	} {
		t.Run(name, func(t *testing.T) {
			late := time.AfterFunc(time.Minute, func() { panic(name + " takes too long") })
			defer late.Stop()
			v := judge(t, deny("rm -rf /*", "curl", "* ./.env", "rm -r /etc/**", "* ~/.ssh/**", "* /etc/shadow", "* ./secrets/**/*.pem", "tar * /var/x"), shellCall(line))
			if v.action == Allow {
				t.Errorf("allowed")
			}
			if name == "deep" && !strings.Contains(v.unknown, "too deep") {
				t.Errorf("it was parsed: %s", v.unknown)
			}
		})
	}
}

// A message shows what it is about in few words, whatever it is.
func TestMessagesAreBounded(t *testing.T) {
	v := judge(t, deny("curl"), shellCall("curl "+strings.Repeat("`x`", 2)+strings.Repeat(" é", 5000)))
	err := v.refusal(shellCall(""))
	if n := len(err.Error()); v.action != Deny || n > 600 {
		t.Errorf("%s, %d bytes: %v", v.action, n, err)
	}
	if tool.KindOf(err) != tool.Denied {
		t.Errorf("got %v", err)
	}
	// It holds nothing that a terminal obeys.
	err = judge(t, deny("curl"), shellCall("curl $'\\e[2J\\r' '\u202e'")).refusal(shellCall(""))
	if strings.ContainsAny(err.Error(), "\x1b\r\u202e") {
		t.Errorf("got %q", err)
	}
	v = judge(t, deny("git push"), shellCall("git $'\\e[2J\\rx'"))
	if v.action != Confirm || strings.ContainsAny(v.because(), "\x1b\r") {
		t.Errorf("got %s, %q", v.action, v.because())
	}
	// Neither does what the rule says, which may be a project's.
	p := deny("curl '\x1b[2J'*")
	p.Rules[0].Reason = "first\nsecond\x1b[2J\u202e" + strings.Repeat(" long", 1000)
	v = judge(t, p, shellCall("curl $X"))
	err = v.refusal(shellCall(""))
	if strings.ContainsAny(err.Error(), "\x1b\n\u202e") || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "first second") {
		t.Errorf("got %q", err)
	}
}

// FuzzLine: whatever a line is, it is judged, and soon.
func FuzzLine(f *testing.F) {
	for _, file := range []string{"testdata/evasions.txt", "testdata/ordinary.txt", "testdata/paths.txt"} {
		for _, line := range lines(f, file) {
			f.Add(spelled(line))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		late := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("%q takes too long", line)) })
		defer late.Stop()
		letters(t, line)
		lettersOf(t, line, "* ./.env", "* ~/.ssh/**")
		if l, err := NewLists([]string{"git *"}, []string{"rm -rf /"}); err != nil {
			t.Error(err)
		} else if err := l.Check(shellCall(line)); err != nil && tool.KindOf(err) != tool.Denied {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzPattern: whatever a pattern is, it is compared, and soon.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"rm -rf /*", "curl", "git push", "rm *", "dd if=/dev/*", `"a b" \* '*'`, "~/x/**", "--", "$x"} {
		f.Add(text, "rm -rf / ~/x")
	}
	f.Fuzz(func(t *testing.T, text, line string) {
		if len(text) > 200 {
			return
		}
		if _, err := parsePattern(text); err != nil {
			return
		}
		judge(t, deny(text), shellCall(line))
	})
}

func BenchmarkLine(b *testing.B) {
	p, err := compile(deny("rm -rf /*", "curl", "git push"))
	if err != nil {
		b.Fatal(err)
	}
	c := shellCall("cd build && make -j4 2>&1 | tail -20; git status --short")
	for b.Loop() {
		p.judge(&subject{call: c})
	}
}

// For some lines the parser goes on after an error, which must not be a panic.
func TestErrorsBehindErrors(t *testing.T) {
	for _, line := range []string{"trap <<E&\nf\n+=x= 2>&1 ~x=\\ceval +=", "{a,rlcu+=unset EXIT<<E$; \n", "<<'E' a; \nf\ncoproc export >{1..2}sh -c &>l*"} {
		if got := letters(t, line); got != "CCC" {
			t.Errorf("%q: %s", line, got)
		}
	}
}
