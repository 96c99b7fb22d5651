package local

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

func TestDeniedCommands(t *testing.T) {
	lists := newCommandLists(profile.BuiltIn(profile.Defaults{}))
	for line, denied := range map[string]bool{
		"rm -rf /":                      true,
		"rm -fr /":                      true,
		"rm -r -f /":                    true,
		"rm --no-preserve-root -rf /":   true,
		"/bin/rm -rf /":                 true,
		`"rm" '-rf' "/"`:                true,
		`r\m -rf /`:                     true,
		"cd /tmp && rm -rf / || true":   true,
		"echo $(rm -rf /)":              true,
		"(sleep 1; rm -rf /) &":         true,
		"sudo -n rm -rf /":              true,
		"timeout 5s nice -n 3 rm -rf /": true,
		"env A=b rm -rf ~":              true,
		"bash -c 'rm -rf /'":            true,
		`sh -ec "bash -c 'rm -rf /'"`:   true,
		"eval 'rm -rf /'":               true,
		`$'\x72m' -r$'f' /`:             true,
		"echo {1..1000000000} {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}": false,
		"bash <<< 'rm -rf /'":                   true,
		"sh -s <<EOF\necho\nrm -rf /\nEOF":      true,
		"/bin/sh <<-'EOF'\n\trm -rf /\n\tEOF":   true,
		"cat <<EOF\nrm -rf /\nEOF":              false,
		"{rm,-rf,/}":                            true,
		"r{m,x} -rf /":                          false, // rm has rx for its first word
		"sudo -u root rm -rf /":                 true,
		"sudo --user root -- rm -rf /":          true,
		"env -u HOME -C /tmp rm -rf /":          true,
		"env -S 'rm -rf /'":                     true,
		"timeout -s KILL 5 rm -rf /":            true,
		"exec -a innocent rm -rf /":             true,
		"xargs -I {} rm -rf / {}":               true,
		"env A=b echo rm -rf /":                 false,
		"dd if=/dev/zero of=/dev/sda":           true,
		"dd of=/dev/sda if=/dev/zero":           false, // words in order, as written in the list
		"mkfs.ext4 /dev/sda1":                   true,
		"rm -rf /tmp/x":                         false,
		"rm -rf build":                          false,
		"rm / ":                                 false,
		"echo rm -rf /":                         false,
		"echo 'rm -rf /' >note":                 false,
		"git commit -m 'rm -rf /'":              false,
		"$TOOL -rf /":                           false,
		"for f in a b; do rm -f $f; done; ls /": false,
		"rebooting":                             false,
	} {
		err := lists.checkCall(call(t, "bash", map[string]any{"command": line}))
		if got := tool.KindOf(err) == tool.Denied && err != nil; got != denied {
			t.Errorf("%s: denied %v, want %v (%v)", line, got, denied, err)
		}
	}
}

func TestAllowedCommands(t *testing.T) {
	lists := newCommandLists(profile.Profile{AllowedCommands: []string{"git status", "git log", "ls", "make test"}})
	for line, allowed := range map[string]bool{
		"git status -s":          true,
		"git -C . status":        false, // the options before a subcommand have values of their own
		"git log | ls":           true,
		"git push":               false,
		"make test":              true,
		"make":                   false,
		"ls $(curl evil)":        false,
		"$(echo ls)":             false,
		"bash -c 'ls -l'":        true,
		"bash -c 'curl evil'":    false,
		`bash -c "$X"`:           false,
		"nice ls":                true,
		"X=1 ls":                 true,
		"if ls; then rm x; fi":   false,
		"function ls { rm x; }":  false,
		"ls 'unterminated":       false,
		"xargs curl <list-of-it": false,
	} {
		err := lists.checkCall(call(t, "bash", map[string]any{"command": line}))
		if got := err == nil; got != allowed {
			t.Errorf("%s: allowed %v, want %v (%v)", line, got, allowed, err)
		}
	}
	for _, c := range []struct {
		r       tool.Request
		allowed bool
	}{
		{call(t, "git", map[string]any{"subcommand": "status"}), true},
		{call(t, "git", map[string]any{"subcommand": "push", "args": []string{"origin"}}), false},
		{call(t, "read_file", map[string]any{"path": "x"}), true},
	} {
		if got := lists.checkCall(c.r) == nil; got != c.allowed {
			t.Errorf("%s %s: allowed %v", c.r.Name, c.r.Arguments, got)
		}
	}
	for _, c := range []struct {
		r       tool.StartRequest
		allowed bool
	}{
		{tool.StartRequest{Argv: []string{"/usr/bin/ls", "-l"}}, true},
		{tool.StartRequest{Argv: []string{"curl", "x"}}, false},
		{tool.StartRequest{Command: "ls; curl x"}, false},
	} {
		if got := lists.checkStart(c.r) == nil; got != c.allowed {
			t.Errorf("start %+v: allowed %v", c.r, got)
		}
	}
}

// A nest that is too deep is not looked through, and not allowed either.
func TestNestedShells(t *testing.T) {
	words := strings.Repeat("env ", 3*maxNesting) + "ls"
	if newCommandLists(profile.Profile{AllowedCommands: []string{"ls"}}).checkLine(words, 0) == nil {
		t.Error("a deep nest is allowed")
	}
}

func call(t *testing.T, name string, arguments any) tool.Request {
	t.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Request{ID: "c", Name: name, Arguments: b}
}
