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
