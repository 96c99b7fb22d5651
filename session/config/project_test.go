package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func project(t *testing.T, text string, user *Config) (Project, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ProjectFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadProject(dir, user)
}

func TestProject(t *testing.T) {
	user := Empty()
	user.ProjectProfiles = []string{"isolated"}
	p, err := project(t, `{
		"execution_environments": {"default": "isolated"},
		"execution": {"timeout": "10s", "max_output_bytes": 100},
		"limits": {"network": "none", "filesystem": "read_only", "cpus": 1, "memory_mb": 64, "pids_limit": 10, "tmpfs_noexec": true},
		"guard": {"rules": [{"tools": ["shell.*"], "action": "deny"}]}, // more
	}`, user)
	if err != nil {
		t.Fatal(err)
	}
	l := p.Limits
	if p.Profile != "isolated" || l.Timeout != 10*time.Second || l.MaxOutputBytes != 100 || l.Network != "none" || !l.ReadOnly ||
		l.CPUs != 1 || l.Memory != 64<<20 || l.PidsLimit != 10 || l.TmpfsNoexec == nil || p.Guard.Empty() {
		t.Errorf("got %+v", p)
	}
	if p, err := LoadProject(t.TempDir(), user); err != nil || p.Profile != "" || !p.Guard.Empty() {
		t.Errorf("no file: %+v, %v", p, err)
	}
}

func TestProjectRefusals(t *testing.T) {
	user := Empty()
	user.ProjectProfiles = []string{"isolated"}
	tests := []struct{ text, path, message, suggestion string }{
		{`{"execution_environments": {"profiles": {}}}`, "execution_environments.profiles", "cannot define profiles", ""},
		{`{"execution_environments": {"overrides": {}}}`, "execution_environments.overrides", "may only tighten", ""},
		{`{"execution_environments": {"default": "local"}}`, "execution_environments.default", "not among", ""},
		{`{"execution_environments": {"default": "isolate"}}`, "execution_environments.default", "not among", "isolated"},
		{`{"tools": {}}`, "tools", "cannot add tools", ""},
		{`{"artifacts": {}}`, "artifacts", "may only tighten", ""},
		{`{"project_profiles": []}`, "project_profiles", "may only tighten", ""},
		{`{"limits": {"network": "enabled"}}`, "limits.network", "must be one of none", ""},
		{`{"limits": {"network": ""}}`, "limits.network", "must be one of none", ""},
		{`{"limits": {"filesystem": ""}}`, "limits.filesystem", "must be one of read_only", ""},
		{`{"limits": {"tmpfs_noexec": false}}`, "limits.tmpfs_noexec", "may only tighten", ""},
		{`{"limits": {"memory": "1g"}}`, "limits.memory", "unknown member", "memory_mb"},
		{`{"limits": {"cpus": 0}}`, "limits.cpus", "more than 0", ""},
		{`{"guard": {"rules": [{}]}}`, "guard.rules[0].tools", "must name tools", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := project(t, tt.text, user)
			var e *Error
			if !errors.As(err, &e) || e.Path != tt.path || !strings.Contains(e.Message, tt.message) || e.Suggestion != tt.suggestion {
				t.Errorf("got %v", err)
			}
		})
	}
	_, err := project(t, `{"execution_environments": {"default": "isolated"}}`, Empty())
	if err == nil || !strings.Contains(err.Error(), "no profile") {
		t.Errorf("without a list: %v", err)
	}
}

// TestProjectLink: a project's file that is a link is followed within its folder only, and
// nothing of what it leads to is told.
func TestProjectLink(t *testing.T) {
	const good = `{"limits": {"network": "none"}}`
	outside := t.TempDir()
	for name, text := range map[string]string{"good": good, "key": "secret1\n", "json": `{"secret2": "secret3"}`, "deep": `{"limits": {"network": "secret4"}}`} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ target, says string }{
		{filepath.Join(outside, "good"), "does not lead to a file of the folder"},
		{filepath.Join(outside, "key"), "does not lead to a file of the folder"},
		{"up/key", "does not lead to a file of the folder"},
		{"nowhere", "leads nowhere"},
		{"in/good", ""},
		{"in/key", "no configuration of a project"},
		{"in/json", "no configuration of a project"},
		{"in/deep", "no configuration of a project"},
		{"in", "not a regular file"},
	} {
		t.Run(tt.target, func(t *testing.T) {
			dir := t.TempDir()
			err := errors.Join(
				os.CopyFS(filepath.Join(dir, "in"), os.DirFS(outside)),
				os.Symlink(outside, filepath.Join(dir, "up")),
				os.Symlink(tt.target, filepath.Join(dir, ProjectFile)))
			if err != nil {
				t.Fatal(err)
			}
			p, err := LoadProject(dir, Empty())
			var e *Error
			switch {
			case tt.says == "":
				if err != nil || p.Limits.Network != "none" {
					t.Errorf("got %+v, %v", p, err)
				}
			case !errors.As(err, &e) || !strings.Contains(e.Message, tt.says) || strings.Contains(e.Error()+e.Hint, "secret"):
				t.Errorf("got %v", err)
			}
		})
	}
}

// A folder that cannot be opened is an error, and nothing in it is read by another way,
// which would follow links anywhere. No folder is no file, unless a link is there.
func TestProjectFolder(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "key")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.WriteFile(secret, []byte("secret\n"), 0o600),
		os.WriteFile(at("file"), nil, 0o600),
		os.Symlink("nowhere", at("link")),
		os.Mkdir(at("closed"), 0o700),
		os.Symlink(secret, filepath.Join(at("closed"), ProjectFile)),
		os.Chmod(at("closed"), 0o100))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(at("closed"), 0o700); err != nil {
			t.Error(err)
		}
	})
	for name, says := range map[string]string{
		"missing": "",
		"link":    "leads nowhere",
		"file":    "cannot be looked into",
		"closed":  "cannot be looked into", // or, by those whom no mode holds: then the link is not followed
	} {
		_, err := LoadProject(at(name), Empty())
		var e *Error
		switch {
		case says == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.As(err, &e) || !strings.Contains(e.Message, says) && (name != "closed" || os.Getuid() > 0 || !strings.Contains(e.Message, "is not followed")):
			t.Errorf("%s: got %v", name, err)
		case strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: it tells of what a link leads to: %v", name, err)
		}
	}
}
