package connection

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestConfiguration: what is made of snippets of ssh_config.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	included := filepath.Join(t.TempDir(), "included")
	if err := os.WriteFile(included, []byte("Host box\n  Port 2200\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const deep = "Host a\n ProxyJump b\nHost b\n ProxyJump c\nHost c\n HostName c.example\n"
	tests := []struct {
		name, config string
		// route is the hosts and, after a bar, why OpenSSH is needed.
		route string
		// fails is a part of the error.
		fails string
	}{
		{"alias", "Host box\n HostName box.example\n User build\n Port 2222\n", "build@box.example:2222", ""},
		{"first value wins", "Host box\n User one\nHost *\n User two\n", "one@box:22", ""},
		{"wildcard, negation", "Host b* !box\n User one\nHost b?x\n User two\n", "two@box:22", ""},
		{"HostName with a token", "Host box\n User u\n HostName %h.example\n", "u@box.example:22", ""},
		{"Include", "Include " + included + "\nHost *\n User u\n Port 7\n", "u@box:2200", ""},
		{"Match host", "Match host box\n User matched\n", "matched@box:22", ""},
		{"Match originalhost", "Host box\n HostName real\n User u\nMatch originalhost box\n Port 9\n", "u@real:9", ""},
		{"Match final", "Host *\n User u\nMatch final host box\n Port 9\n", "u@box:9", ""},
		{"Match exec, true", "Match exec \"test %h = box\"\n User yes\nHost *\n User no\n", "yes@box:22", ""},
		{"Match exec, false", "Match exec false\n User yes\nHost *\n User no\n", "no@box:22", ""},
		{"IPv6", "Host box\n User u\n HostName ::1\n", "u@[::1]:22", ""},
		{"AddressFamily", "Host box\n User u\n AddressFamily inet6\n BindAddress ::1\n", "u@box:22", ""},

		{"jump", "Host box\n User u\n ProxyJump j@jump:33\n", "u@box:22 through j@jump:33", ""},
		{"jump by alias", "Host box\n User u\n ProxyJump jump\nHost jump\n HostName jump.example\n User j\n Port 4\n", "u@box:22 through j@jump.example:4", ""},
		{"jump, IPv6", "Host box\n User u\n ProxyJump j@[::1]:44\n", "u@box:22 through j@[::1]:44", ""},
		{"jump, URI", "Host box\n User u\n ProxyJump ssh://j@jump:5\n", "u@box:22 through j@jump:5", ""},
		{"jumps", "Host *\n User u\nHost box\n ProxyJump a,b:7,c\n", "u@box:22 through u@c:22, u@b:7, u@a:22", ""},
		{"jumps of jumps", deep + "Host box\n ProxyJump a\nHost *\n User u\n", "u@box:22 through u@a:22, u@b:22, u@c.example:22", ""},
		{"a list wins over a jump's own", deep + "Host box\n ProxyJump x,a\nHost *\n User u\n", "u@box:22 through u@a:22, u@x:22", ""},
		{"a list wins over a jump's own command", "Host a\n ProxyCommand nc %h %p\nHost box\n ProxyJump x,a\nHost *\n User u\n", "u@box:22 through u@a:22, u@x:22", ""},
		{"a jump's own command", "Host a\n ProxyCommand nc %h %p\nHost box\n ProxyJump a\nHost *\n User u\n", "u@box:22 through u@a:22|ProxyCommand", ""},
		{"no jump", "Host box\n User u\n ProxyJump none\nHost *\n ProxyJump jump\n", "u@box:22", ""},
		{"jumps in a circle", "Host box\n ProxyJump other\nHost other\n ProxyJump box\n", "", "in a circle"},

		{"ProxyCommand", "Host box\n User u\n ProxyCommand nc %h %p\n", "u@box:22|ProxyCommand", ""},
		{"ProxyCommand none", "Host box\n User u\n ProxyCommand none\n", "u@box:22", ""},
		{"ProxyUseFdpass", "Host box\n User u\n ProxyUseFdpass yes\n", "u@box:22|ProxyUseFdpass", ""},
		{"KnownHostsCommand", "Host box\n User u\n KnownHostsCommand /bin/keys %H\n", "u@box:22|KnownHostsCommand", ""},
		{"RevokedHostKeys", "Host box\n User u\n RevokedHostKeys /etc/revoked\n", "u@box:22|RevokedHostKeys", ""},
		{"PKCS11Provider", "Host box\n User u\n PKCS11Provider /usr/lib/p.so\n", "u@box:22|PKCS11Provider", ""},
		{"SecurityKeyProvider", "Host box\n User u\n SecurityKeyProvider /usr/lib/sk.so\n", "u@box:22|SecurityKeyProvider", ""},
		{"PubkeyAuthentication", "Host box\n User u\n PubkeyAuthentication no\n", "u@box:22|PubkeyAuthentication", ""},
		{"PreferredAuthentications", "Host box\n User u\n PreferredAuthentications keyboard-interactive\n", "u@box:22|PreferredAuthentications", ""},
		{"PreferredAuthentications, keys too", "Host box\n User u\n PreferredAuthentications publickey,password\n", "u@box:22", ""},
		{"BindInterface", "Host box\n User u\n BindInterface lo\n", "u@box:22|BindInterface", ""},
		{"Compression", "Host box\n User u\n Compression yes\n", "u@box:22|Compression", ""},
		{"KexAlgorithms, some known", "Host box\n User u\n KexAlgorithms sntrup761x25519-sha512@openssh.com,curve25519-sha256\n", "u@box:22", ""},
		{"KexAlgorithms, none known", "Host box\n User u\n KexAlgorithms sntrup761x25519-sha512@openssh.com\n", "u@box:22|KexAlgorithms", ""},
		{"MACs, none known", "Host box\n User u\n MACs umac-64@openssh.com\n", "u@box:22|MACs", ""},
		{"a jump's directive", "Host box\n User u\n ProxyJump j@jump\nHost jump\n Compression yes\n", "u@box:22 through j@jump:22|Compression", ""},
		{"no bearing", "Host box\n User u\n StrictHostKeyChecking no\n ForwardAgent yes\n ForwardX11 yes\n LocalForward 1 a:2\n RemoteCommand top\n ControlMaster auto\n ControlPath /tmp/x-%C\n GSSAPIAuthentication yes\n RequestTTY force\n ServerAliveInterval 3\n TCPKeepAlive no\n VisualHostKey yes\n LogLevel DEBUG3\n", "u@box:22", ""},

		{"unknown directive", "Host box\n NoSuchThing yes\n", "", "line 2: Bad configuration option"},
		{"no such file included", "Include /nonexistent/file\nHost *\n User u\n", "u@box:22", ""},
		{"HostName with a dash", "Host box\n HostName -oProxyCommand=x\n", "", "begins with a dash"},
		{"HostName for a shell", "Host box\n HostName a`id`\n", "", "a shell would read"},
		{"jump with a dash", "Host box\n ProxyJump u@-x\n", "", ""},
		{"User for a shell", "Host box\n User $(id)\n", "", "a shell would read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := sshtest.NewClient(t, "", tt.config)
			r, err := p.Resolve(t.Context(), Destination{Host: "box", ConfigFile: c.ConfigFile})
			if tt.route == "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || tool.KindOf(err) != tool.ConfigInvalid {
					t.Fatalf("got %v, %v; want an error with %q", r, err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := r.String()
			if r.beyond != "" {
				got += "|" + r.beyond
			}
			if got != tt.route {
				t.Fatalf("got %q, want %q", got, tt.route)
			}
		})
	}
}

// TestMembersWin: what a profile says comes before the configuration.
func TestMembersWin(t *testing.T) {
	t.Parallel()
	c := sshtest.NewClient(t, "", "Host box\n User u\n Port 1\n IdentityFile /of/config\n HostName real\n")
	r, err := newPool(t).Resolve(t.Context(), Destination{
		Host: "box", User: "me", Port: 2, IdentityFile: "/of/the 100% profile", KnownHostsFile: "/my known", ConfigFile: c.ConfigFile,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.User() != "me" || r.last().Host != "real" || r.last().Port != 2 {
		t.Errorf("got %s", r)
	}
	if got, want := r.last().Settings["identityfile"], []string{"/of/the 100%% profile", "/of/config"}; !slices.Equal(got, want) {
		t.Errorf("identities %q, want %q", got, want)
	}
	if got := r.last().knownHostsFiles(); !slices.Equal(got, []string{"/my known"}) {
		t.Errorf("known hosts %q", got)
	}
}

// TestNames: what is no name never reaches ssh.
func TestNames(t *testing.T) {
	t.Parallel()
	p := NewPool(Options{Program: "/nonexistent/ssh"})
	defer p.Close()
	for _, d := range []Destination{
		{}, {Host: "-oProxyCommand=touch x"}, {Host: "a b"}, {Host: "a\tb"}, {Host: "a\nb"}, {Host: "a\x00b"}, {Host: "a\u00a0b"},
		{Host: "a;b"}, {Host: "$(a)"}, {Host: "`a`"}, {Host: "u@h"}, {Host: "a,b"}, {Host: "ssh://h"}, {Host: "a\u0085b"},
		{Host: "h", User: "-l"}, {Host: "h", User: "a b"}, {Host: "h", User: "a\nb"}, {Host: "h", User: "$USER"},
		{Host: "h", Port: -1}, {Host: "h", Port: 65536},
		{Host: "h", IdentityFile: "a\"b"}, {Host: "h", KnownHostsFile: "a\nb"}, {Host: "h", ConfigFile: "${HOME}/c"},
	} {
		if r, err := p.Resolve(t.Context(), d); tool.KindOf(err) != tool.ConfigInvalid {
			t.Errorf("%+v: got %v, %v", d, r, err)
		}
	}
	for _, spec := range []string{"", "@h", "h:", "h:0", "h:x", "h:70000", "-h", "u@-h", "-u@h", "u@h x", "[::1", "[::1]x", "ssh://h/x", "ssh://h?x", "a;b"} {
		if d, err := parseJump(spec); err == nil && spec != "h:" {
			t.Errorf("jump %q: got %+v", spec, d)
		}
	}
}

// TestEveryDirective: nothing that the ssh here prints is unknown.
func TestEveryDirective(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("ssh", "-F", os.DevNull, "-G", "--", "box").Output()
	if err != nil {
		t.Fatal(err)
	}
	why, unknown := parseSettings(string(out)).beyond()
	if why != "" || len(unknown) > 0 {
		t.Fatalf("an empty configuration needs %q, and has unknown %q", why, unknown)
	}
}

// TestNewerDirective: a directive that is not known here is OpenSSH's, unless
// it is as it always is. The ssh is a double that prints more than the real one.
func TestNewerDirective(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "ssh")
	script := "#!/bin/sh\nssh \"$@\" || exit\necho always there\ncase \"$*\" in *" + os.DevNull + "*) ;; *) echo routevia elsewhere;; esac\n"
	// A child that another test forks meanwhile would have the program open for writing.
	syscall.ForkLock.RLock()
	err := os.WriteFile(program, []byte(script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(Options{Program: program})
	defer p.Close()
	c := sshtest.NewClient(t, "", "Host box\n User u\n")
	r, err := p.Resolve(t.Context(), Destination{Host: "box", ConfigFile: c.ConfigFile})
	if err != nil {
		t.Fatal(err)
	}
	if r.beyond != "routevia" {
		t.Fatalf("OpenSSH for %q, want routevia", r.beyond)
	}
}

// TestNoProgram: without ssh the profile's members suffice, and nothing else is
// left out in silence.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	c := sshtest.NewClient(t, s.KnownHosts())
	p := NewPool(Options{Program: "/nonexistent/ssh"})
	defer p.Close()
	d := Destination{Host: s.Host, Port: s.Port, User: s.User, IdentityFile: key.File, KnownHostsFile: c.KnownHostsFile}
	plain := resolver{me: me{name: "somebody", home: t.TempDir()}}
	if data, err := os.ReadFile(systemConfig()); err == nil && saysSomething(data) {
		// As it is here: it may say anything.
		if _, err := plain.plain(d); tool.KindOf(err) != tool.BackendUnavailable || !strings.Contains(err.Error(), systemConfig()) {
			t.Fatalf("got %v", err)
		}
	}
	d.ConfigFile = c.ConfigFile
	if _, err := p.Resolve(t.Context(), d); tool.KindOf(err) != tool.BackendUnavailable || !strings.Contains(err.Error(), "no ssh program") {
		t.Fatalf("got %v", err)
	}
	d.ConfigFile = ""
	r := plain.bare(d)
	if err := r.seal(); err != nil {
		t.Fatal(err)
	}
	conn, err := p.Dial(t.Context(), r, nil)
	if err != nil {
		t.Fatal(explain(err))
	}
	says(t, conn, "echo hello", "hello\n")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExpand: what ssh -G leaves in names of files.
func TestExpand(t *testing.T) {
	t.Parallel()
	h := &hop{
		Name: "box", Host: "box.example", Port: 22, User: "u",
		Settings: settings{"proxyjump": {"a,u@b:3"}}, me: me{name: "me", home: "/home/me", uid: "7"},
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"~/.ssh/id":            "/home/me/.ssh/id",
		"~root/x":              "/root/x",
		"/k/%h-%n-%p-%r-%u-%i": "/k/box.example-box-22-u-me-7",
		"%d/%%/%k/%j":          "/home/me/%/box/b",
		"/%l":                  "/" + host,
		"/x y/z":               "/x y/z",
	} {
		if got, err := h.expand(in); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"/%", "/%z", "/${NO_SUCH_VARIABLE_OF_MINE}", "/${HOME", "~no-such-account/x"} {
		if got, err := h.expand(in); err == nil {
			t.Errorf("%s: got %q", in, got)
		}
	}
}

// TestPaths: a list of files in which one has a blank.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := settings{"userknownhostsfile": {"/a /b c d /e none"}}
	got := s.paths("userknownhostsfile", func(p string) bool { return p == "/b c d" })
	if want := []string{"/a", "/b c d", "/e"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// TestQuote: a shell reads the words that were quoted.
func TestQuote(t *testing.T) {
	t.Parallel()
	words := []string{"plain-word_1", "", "a b", "it's", "$HOME", "`id`", `"\`, "a\nb", "~", "*", "!x", "é", "-n", "#c"}
	out, err := exec.Command("sh", "-c", "printf '%s\\0' "+Quote(words...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Fatalf("got %q, want %q", got, words)
	}
}
