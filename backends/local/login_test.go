//go:build unix

package local

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/profile"
)

// fakeShell writes a shell that does what body says with its arguments.
func fakeShell(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadLogin(t *testing.T) {
	home := t.TempDir()
	rc := "echo a banner; export FROM_PROFILE=\"two\nlines\"; test -n \"$" + loginMarker + "\" && export SEEN=1\n"
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"/bin/sh", "/bin/bash"} {
		login := readLogin([]string{"HOME=" + home, "SHELL=" + shell, "PATH=/usr/bin:/bin", "OWN=kept"})
		if login.problem != nil {
			t.Errorf("%s: %v", shell, login.problem)
		}
		for _, want := range []string{"FROM_PROFILE=two\nlines", "SEEN=1", "OWN=kept"} {
			if !slices.Contains(login.variables, want) {
				t.Errorf("%s: no %q in %q", shell, want, login.variables)
			}
		}
		for _, v := range login.variables {
			if name, _, _ := strings.Cut(v, "="); slices.Contains(passing, name) {
				t.Errorf("%s: %s was kept", shell, v)
			}
		}
	}
}

// Whatever the shell does, there is an environment.
func TestReadLoginFallback(t *testing.T) {
	for name, body := range map[string]string{
		"fails":    "exit 3",
		"babbles":  "yes",
		"is quiet": "exit 0",
		"no env":   "eval \"$4\" | head -1",
	} {
		t.Run(name, func(t *testing.T) {
			login := readLogin([]string{"SHELL=" + fakeShell(t, body), "HOME=/h", "PATH=/usr/bin:/bin", "OWN=kept", "PWD=/"})
			if login.problem == nil {
				t.Error("no problem is told")
			}
			if !slices.Equal(login.variables[1:], []string{"HOME=/h", "PATH=/usr/bin:/bin", "OWN=kept"}) {
				t.Errorf("the fallback is %q", login.variables)
			}
		})
	}
}

// A service that a system has started has no HOME; startup files and commands have.
func TestReadLoginWithoutHome(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string][]string{"none": {}, "an empty one": {"HOME="}} {
		t.Run(name, func(t *testing.T) {
			shell := fakeShell(t, `export SEEN="$HOME"; eval "$4"`)
			login := readLogin(append(own, "SHELL="+shell, "PATH=/usr/bin:/bin"))
			for _, want := range []string{"HOME=" + u.HomeDir, "SEEN=" + u.HomeDir} {
				if !slices.Contains(login.variables, want) {
					t.Errorf("no %s in %q, %v", want, login.variables, login.problem)
				}
			}
		})
	}
}

func TestCommandEnvironment(t *testing.T) {
	login := loginEnvironment{variables: []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "SECRET=x", "APP_A=1", "APP_B=2", "LISTED=3"}}
	for _, c := range []struct {
		mode string
		want string
	}{
		{"", "PATH HOME LC_ALL SECRET APP_A APP_B LISTED"},
		{"inherit", "PATH HOME LC_ALL SECRET APP_A APP_B LISTED"},
		{"clean", "PATH HOME LC_ALL"},
		{"allowlist", "PATH HOME LC_ALL APP_A APP_B LISTED"},
	} {
		var names []string
		for _, v := range commandEnvironment(login, profile.Profile{
			EnvMode: c.mode, EnvAllowlist: []string{"LISTED"}, EnvAllowPrefixes: []string{"APP_"},
		}) {
			name, _, _ := strings.Cut(v, "=")
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.mode, got, c.want)
		}
	}
}
