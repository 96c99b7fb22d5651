package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestGuardedNames(t *testing.T) {
	for why, names := range map[string][]string{
		guardedSecret: {
			".env", "a/.env", ".env.local", ".env.production", ".ENV", ".env-prod", ".env_test", ".envrc",
			"id_rsa", "deploy/id_ed25519", "server.pem", "tls/Server.KEY", "store.p12", "putty.ppk", "release.keystore",
			".netrc", ".git-credentials", ".pgpass", ".pypirc", ".aws/credentials", "home/.docker/config.json", ".kube/config",
			".vault-token", "a/application_default_credentials.json", ".config/gh/hosts.yml", "home/.config/gcloud/credentials.db",
			".azure/msal_token_cache.json", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
			".ssh", ".ssh/config", "home/.ssh/known_hosts", ".gnupg/private-keys-v1.d/x", ".env.example.local",
		},
		guardedRepository: {".git", ".git/config", ".git/hooks/pre-commit", "sub/.git/HEAD", ".hg/hgrc", ".svn/entries", ".jj/repo", ".git/id_rsa"},
		"": {
			".", "a", ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.local.example", ".environment", ".envoy.yaml", "env",
			".env/bin/activate", "id_rsa.pub", "id_rsa.go", "pem", "key", "monkey.go", "keys/main.go", ".npmrc", ".gitignore", ".gitattributes", ".gitmodules",
			".github/workflows/ci.yml", "aws/credentials", "credentials", "config.json", ".docker/daemon.json", "docs/.git.md",
			".config/gh/config.yml", "gh/hosts.yml", ".cargo/config.toml",
		},
	} {
		for _, name := range names {
			if got := guarded(name); got != why {
				t.Errorf("%s: %q, want %q", name, got, why)
			}
		}
	}
}

// Every tool that gives or takes contents leaves guarded files alone, by all
// names that they have, unless it is unconfined; names are shown, and people look
// at what they like.
func TestGuarded(t *testing.T) {
	const secret = "TOKEN=s3cret\n"
	b := newBench(t, map[string]string{
		".env": secret, "app/.env.local": secret, "home/.ssh/id_ed25519": secret, ".env.example": "TOKEN=\n",
		".git/config": "[core]\n", "main.go": "TOKEN\n", "home/.aws/credentials": secret,
	}, func(o *Options) { o.Ceiling = tool.Unconfined })
	for name, target := range map[string]string{"innocent": ".env", "absolute": filepath.Join(b.dir, ".env"), "keys": "home/.ssh", "aws": "home/.aws", "chain": "innocent"} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	calls := func(path string) []tool.Request {
		return []tool.Request{
			request(t, "read_file", args{"path": path}),
			request(t, "read_file", args{"path": path, "encoding": "base64"}),
			request(t, "write_file", args{"path": path, "content": "x"}),
			request(t, "write_file", args{"path": path, "content": "x", "create_only": true}),
			request(t, "edit_file", args{"path": path, "old_text": "TOKEN", "new_text": "x"}),
			request(t, "present_artifact", args{"path": path}),
			request(t, "grep", args{"path": path, "pattern": "TOKEN"}),
		}
	}
	for _, path := range []string{
		".env", "./app/../.env", filepath.Join(b.dir, ".env"), "app/.env.local", "home/.ssh/id_ed25519", "keys/id_ed25519",
		"innocent", "absolute", "chain", "aws/credentials", ".git/config", ".git/hooks/new", "new/.env.new", "keys/new",
		"bytes:%2eenv", "bytes:app/%2E%65nv.local", ".env/", ".//.env", ".ENV", "home/.SSH/new", ".Git/config",
	} {
		for _, r := range calls(path) {
			err := b.fails(tool.Denied, r)
			var e *tool.Error
			if errors.As(err, &e) && (!strings.Contains(e.Hint, "max_permission_mode") || e.Path == "" || strings.Contains(e.Error()+e.Hint, "s3cret")) {
				t.Errorf("%s: it says %q, %q", path, e, e.Hint)
			}
		}
	}
	if b.get(".env") != secret || b.get(".git/config") != "[core]\n" {
		t.Error("a refused call changed a file")
	}
	if _, err := os.Lstat(filepath.Join(b.dir, "new")); err == nil {
		t.Error("a refused call made a directory")
	}

	// A search neither prints nor betrays what is in them, and says so.
	got := b.call("grep", args{"pattern": "TOKEN"})
	want(t, got, args{"total": 2, "guarded": 4})
	for _, m := range got["matches"].([]any) {
		if p := m.(map[string]any)["path"]; p != ".env.example" && p != "main.go" {
			t.Errorf("grep prints %v", p)
		}
	}
	want(t, b.call("grep", args{"pattern": "s3cret", "output_mode": "files_with_matches"}), args{"total": 0})
	want(t, b.call("grep", args{"pattern": "s3cret", "path": "aws", "output_mode": "count"}), args{"total": 0, "guarded": 1})
	want(t, b.call("glob", args{"pattern": "**/.env*"}), args{"files": []string{".env", ".env.example", "app/.env.local"}})
	want(t, b.call("list_files", args{"path": "home/.ssh"}), args{"total": 1})
	want(t, b.call("read_file", args{"path": ".env.example"}), args{"content": "TOKEN=\n"})

	if data, err := b.ReadFile(t.Context(), ".env", 0, -1); err != nil || string(data) != secret {
		t.Errorf("a person reads %q, %v", data, err)
	}
	if _, err := b.WriteFile(t.Context(), ".env", []byte(secret)); err != nil {
		t.Errorf("a person writes: %v", err)
	}

	for _, r := range []tool.Request{
		request(t, "grep", args{"path": "innocent", "pattern": "s3cret"}),
		request(t, "read_file", args{"path": "innocent"}),
		request(t, "edit_file", args{"path": "innocent", "old_text": "s3cret", "new_text": "changed"}),
		request(t, "present_artifact", args{"path": ".env"}),
		request(t, "write_file", args{"path": ".git/config", "content": "x"}),
	} {
		r.Mode = tool.Unconfined
		if res, err := b.Call(t.Context(), r); err != nil || res.IsError {
			t.Errorf("%s %s unconfined: %+v, %v", r.Name, r.Arguments, res, err)
		}
	}
	if b.get(".env") != "TOKEN=changed\n" || b.get(".git/config") != "x" {
		t.Error("an unconfined call changed nothing")
	}
	r := request(t, "grep", args{"pattern": "s3cret"})
	r.Mode = tool.Unconfined
	res, err := b.Call(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range []string{"app/.env.local", "home/.ssh/id_ed25519", "home/.aws/credentials"} {
		if !strings.Contains(string(res.StructuredContent), found) {
			t.Errorf("unconfined, grep leaves out %s: %s", found, res.StructuredContent)
		}
	}
}
