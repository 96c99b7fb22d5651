package tools

import (
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// What tools neither read nor write, unless they are called in the mode
// unconfined. The lists are in SECURITY.md, which says what they are for. Names
// are compared without regard to case, as some file systems do.
var (
	// keyNames are private keys, and files that hold passwords and nothing else.
	keyNames = []string{
		"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
		".netrc", "_netrc", ".pgpass", ".git-credentials", ".pypirc", ".htpasswd", ".vault-token", "application_default_credentials.json",
	}
	// keyEndings are what private keys and stores of them end in.
	keyEndings = []string{".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx"}
	// keyDirs hold keys, with all that is in them.
	keyDirs = []string{".ssh", ".gnupg"}
	// keyPaths are files that say nothing by their name alone.
	keyPaths = []string{
		".aws/credentials", ".docker/config.json", ".kube/config", ".config/gh/hosts.yml", ".config/gcloud/credentials.db",
		".azure/msal_token_cache.json", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
	}
	// environments hold variables, alone or with one of environmentJoints and
	// more behind them.
	environments      = []string{".env", ".envrc"}
	environmentJoints = ".-_"
	// environmentSamples end the names of files that show what a ".env" must
	// hold, and are meant to be read.
	environmentSamples = []string{".example", ".sample", ".template", ".dist"}
	// repositories are where version control systems keep their data.
	repositories = []string{".git", ".hg", ".svn", ".jj", ".bzr"}
)

// Why a file is guarded.
const (
	guardedSecret     = "it is a kind of file that holds secrets"
	guardedRepository = "it belongs to the version control system"
)

// guarded says why tools leave a file alone, "" for all others. The name is
// relative to the workspace and leads through no link.
func guarded(name string) string {
	name = strings.ToLower(name)
	for rest, more := name, true; more; {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		switch {
		case slices.Contains(repositories, part):
			return guardedRepository
		case slices.Contains(keyDirs, part):
			return guardedSecret
		}
	}
	base := path.Base(name)
	switch {
	case slices.Contains(keyNames, base), slices.Contains(keyEndings, path.Ext(base)),
		slices.ContainsFunc(keyPaths, func(p string) bool { return name == p || strings.HasSuffix(name, "/"+p) }),
		slices.ContainsFunc(environments, func(e string) bool { return isEnvironment(base, e) }):
		return guardedSecret
	}
	return ""
}

// isEnvironment reports whether a name is that of a file of variables or of one
// of its variants, and not of a sample.
func isEnvironment(base, environment string) bool {
	rest, ok := strings.CutPrefix(base, environment)
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], environmentJoints) {
		return false
	}
	return !slices.Contains(environmentSamples, path.Ext(base))
}

// Guarded says why tools leave a file alone that is not called in the mode
// unconfined, by its own name or by the one that links lead to; "" for all others.
func Guarded(root *workspace.Root, name string) (why string, err error) {
	if why := guarded(name); why != "" {
		return why, nil
	}
	resolved, err := root.Resolve(name)
	if err != nil {
		return "", err
	}
	return guarded(resolved), nil
}

// fileName is the name of the file that a tool is asked to read or to write. It
// fails with [tool.Denied] for one that is guarded, by its own name or by the one
// that links lead to. A link that is swapped in later is not looked for:
// whoever can do that can read the file by a command.
func (s *Set) fileName(c *call, p string) (string, error) {
	name, err := s.o.Root.Name(p)
	if err != nil || c.mode == tool.Unconfined {
		return name, err
	}
	why, err := Guarded(s.o.Root, name)
	if err != nil || why == "" {
		return name, err
	}
	shown := s.o.Root.Format(name)
	hint := "it stays open to people in the editor"
	if why == guardedRepository {
		hint = "the git tool and commands work with the repository"
	}
	return "", tool.Errorf(tool.Denied, "%s does not touch %q: %s", c.Name, shown, why).WithPath(shown).
		WithHint("%s; a person may allow it to tools by \"max_permission_mode\": \"unconfined\" in the profile, and the call must then ask for the mode unconfined", hint)
}

// skipGuarded tells a search below base which files it must not look into; nil
// is none.
func (s *Set) skipGuarded(c *call, base string) func(name string) bool {
	if c.mode == tool.Unconfined {
		return nil
	}
	resolved, err := s.o.Root.Resolve(base)
	if err != nil || resolved == base {
		return func(name string) bool { return guarded(name) != "" }
	}
	return func(name string) bool {
		return guarded(path.Join(resolved, strings.TrimPrefix(name, base))) != ""
	}
}
