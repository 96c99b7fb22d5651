package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tailscale/hujson"

	"github.com/caisson-dev/caisson/backends/profile"
)

// full uses every section.
const full = `{
	// What sessions run in.
	"$schema": "./caisson.schema.json",
	"execution_environments": {
		"default": "isolated", /* of all sessions */
		"overrides": { "plugins.*": "pure", "file.read_file": "local", "*": "isolated" },
		"profiles": {
			"isolated": { "backend": "docker", "image": "debian:bookworm-slim", "cpus": 2, "memory_mb": 2048, "persistent": true, },
			"pure": { "backend": "wasm", "max_memory_pages": 1024 },
			"build.box": { "backend": "ssh", "host": "build", "timeout": "1h" },
		},
	},
	"execution": { "timeout": "90s", "max_output_bytes": 4096, "max_retries": 0, "retry_backoff": 0.5 },
	"guard": {
		"rules": [
			{ "tools": ["shell.*"], "match": { "command": "rm *" }, "actors": ["subagent"], "action": "deny", "reason": "no" },
			{ "tools": ["*"], "action": "allow" },
		],
		"rate": { "calls_per_minute": 60 },
		"budget": { "max_calls": 100, "max_runtime": "1h", "max_output_bytes": 1000000 },
		"confirm_timeout": "30s",
	},
	"tools": {
		"plugins": [{ "name": "sum", "wasm": "/opt/sum.wasm", "profile": "pure" }],
		"packs": [{ "name": "lint", "command": "/opt/lint", "source": "/opt/host-lint", "profiles": ["isolated"] },
			{ "name": "fmt", "command": ["fmt", "-x"], "profiles": ["isolated", "build.box"] }],
	},
	"artifacts": { "keep": "24h" },
	"project_profiles": ["isolated", "local"],
}
`

func TestFull(t *testing.T) {
	for name, text := range map[string]string{"plain": full, "with a byte order mark": "\ufeff" + full} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("config.json", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if c.Default != "isolated" || !reflect.DeepEqual(c.Names(), []string{"local", "isolated", "pure", "build.box"}) {
				t.Errorf("default %q, names %v", c.Default, c.Names())
			}
			if !reflect.DeepEqual(c.Overrides, []Override{{"plugins.*", "pure"}, {"file.read_file", "local"}, {"*", "isolated"}}) {
				t.Errorf("overrides %v", c.Overrides)
			}
			if c.Execution != (Execution{90 * time.Second, 4096, 0, 500 * time.Millisecond}) {
				t.Errorf("execution %+v", c.Execution)
			}
			if p, ok := c.Profile("isolated"); !ok || p.Timeout != 90*time.Second || p.MaxOutputBytes != 4096 || p.Memory != 2<<30 {
				t.Errorf("isolated %+v", p)
			}
			if p, ok := c.Profile("build.box"); !ok || p.Timeout != time.Hour {
				t.Errorf("build.box %+v", p)
			}
			if p, ok := c.Profile("local"); !ok || p.Backend != profile.Local || p.Timeout != 90*time.Second {
				t.Errorf("local %+v", p)
			}
			if g := c.Guard; len(g.Rules) != 2 || g.Rules[0].Match["command"] != "rm *" || g.Rate != (Rate{60, 60}) ||
				g.Budget != (Budget{100, time.Hour, 1000000}) || g.ConfirmTimeout != 30*time.Second || g.Empty() {
				t.Errorf("guard %+v", g)
			}
			if len(c.Tools.Plugins) != 1 || !reflect.DeepEqual(c.Tools.Packs[0].Command, []string{"/opt/lint"}) || len(c.Tools.Packs[1].Command) != 2 {
				t.Errorf("tools %+v", c.Tools)
			}
			if c.Keep != 24*time.Hour || len(c.ProjectProfiles) != 2 {
				t.Errorf("keep %v, project profiles %v", c.Keep, c.ProjectProfiles)
			}
		})
	}
}

func TestEmpty(t *testing.T) {
	missing, err := Load(filepath.Join(t.TempDir(), "none.json"))
	if err != nil {
		t.Fatal(err)
	}
	braces, err := Parse("config.json", []byte("{} // nothing"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Config{missing, braces} {
		if !reflect.DeepEqual(c, Empty()) || !c.Guard.Empty() || c.Default != "local" {
			t.Errorf("got %+v", c)
		}
	}
}

func TestRefusals(t *testing.T) {
	env := func(members string) string { return `{"execution_environments": {` + members + `}}` }
	box := func(members string) string {
		return "{\n\t\"execution_environments\": {\n\t\t\"profiles\": {\n\t\t\t\"box\": {" + members + "}\n\t\t}\n\t}\n}"
	}
	tests := []struct {
		name, text    string
		line, column  int
		path, message string
		suggestion    string
	}{
		{"nothing", "", 1, 1, "", "is empty", ""},
		{"a list", "[]", 1, 1, "", "must be an object", ""},
		{"no end", "{\n  \"guard\": {", 2, 13, "", "EOF", ""},
		{"a stray character", "{\n  \"guard\": ?\n}", 2, 12, "", "invalid character", ""},
		{"two documents", "{} {}", 1, 4, "", "invalid character", ""},
		{"not UTF-8", "{\"a\": \"\xff\"}", 1, 8, "", "not valid UTF-8", ""},
		{"unknown section", "{\n  \"gard\": {}\n}", 2, 3, "gard", "unknown member", "guard"},
		{"unknown member", `{"execution": {"timeuot": "1s"}}`, 1, 16, "execution.timeuot", "unknown member", "timeout"},
		{"case matters", `{"Guard": {}}`, 1, 2, "Guard", "unknown member", "guard"},
		{"a doubled member", "{\"artifacts\": {},\n\"artifacts\": {}}", 2, 1, "artifacts", "twice", ""},
		{"a doubled profile", env(`"profiles": {"a": {"backend":"local"}, "a": {"backend":"local"}}`), 1, 68, "execution_environments.profiles.a", "twice", ""},
		{"a doubled member of a profile", box("\"backend\":\"local\",\n\"shell\":\"/a\", \"shell\":\"/b\""), 5, 15, "execution_environments.profiles.box.shell", "twice", ""},
		{"null", `{"guard": null}`, 1, 11, "guard", "null has no meaning", ""},
		{"null inside", `{"project_profiles": ["local", null]}`, 1, 32, "project_profiles[1]", "null has no meaning", ""},
		{"wrong type", `{"execution": {"max_retries": "three"}}`, 1, 16, "execution.max_retries", "must be a whole number", ""},
		{"a part of one", `{"execution": {"max_retries": 1.5}}`, 1, 16, "execution.max_retries", "must be a whole number", ""},
		{"wrong section", `{"guard": []}`, 1, 2, "guard", "must be an object", ""},
		{"wrong list", `{"project_profiles": "a"}`, 1, 2, "project_profiles", "must be a list", ""},
		{"bad duration", `{"execution": {"timeout": "fast"}}`, 1, 16, "execution.timeout", "must be a duration", ""},
		{"no time", `{"execution": {"timeout": 0}}`, 1, 16, "execution.timeout", "more than 0", ""},
		{"too many retries", `{"execution": {"max_retries": 11}}`, 1, 16, "execution.max_retries", "between 0 and 10", ""},
		{"too much output", `{"execution": {"max_output_bytes": 2097153}}`, 1, 16, "execution.max_output_bytes", "between 1 and 2097152", ""},
		{"columns count characters", `{"execution": {"timeout": "ä", "max_retries": 99}}`, 1, 16, "execution.timeout", "must be a duration", ""},
		{"after other characters", `{/*äöü*/ "gard": {}}`, 1, 10, "gard", "unknown member", "guard"},
		{"unknown default", env(`"default": "lokal"`), 1, 29, "execution_environments.default", `no profile "lokal"`, "local"},
		{"unknown override", env(`"overrides": {"shell.*": "nowhere"}`), 1, 43, "execution_environments.overrides[\"shell.*\"]", "no profile", ""},
		{"override of no group", env(`"overrides": {"shel.*": "local"}`), 1, 43, "execution_environments.overrides[\"shel.*\"]", "no group", "shell"},
		{"override without a dot", env(`"overrides": {"shell": "local"}`), 1, 43, "execution_environments.overrides.shell", "group.tool", "shell.*"},
		{"override that is no glob", env(`"overrides": {"shell.[": "local"}`), 1, 43, "execution_environments.overrides[\"shell.[\"]", "not a glob", ""},
		{"local is built in", env(`"profiles": {"local": {"backend": "local"}}`), 1, 42, "execution_environments.profiles.local", "built in", ""},
		{"a bad name", env(`"profiles": {"my box": {"backend": "local"}}`), 1, 42, "execution_environments.profiles[\"my box\"]", "cannot be the name", ""},
		{"a profile that is none", env(`"profiles": {"box": "docker"}`), 1, 42, "execution_environments.profiles.box", "must be an object", ""},
		{"a missing member", box(`"backend": "docker"`), 4, 4, "execution_environments.profiles.box.image", "is missing", ""},
		{"an unknown member of a profile", box("\n\t\t\t\t\"backend\": \"docker\", \"image\": \"a\",\n\t\t\t\t\"memmory\": \"1g\""), 6, 5, "execution_environments.profiles.box.memmory", "unknown member", "memory"},
		{"deep in a profile", box(`"backend": "docker", "image": "a", "mounts": [{"source": "/a", "target": "b"}]`), 4, 75, "execution_environments.profiles.box.mounts[0].target", "absolute", ""},
		{"a rule without tools", `{"guard": {"rules": [{"action": "deny"}]}}`, 1, 22, "guard.rules[0].tools", "must name tools", ""},
		{"a rule without action", `{"guard": {"rules": [{"tools": ["*"]}]}}`, 1, 22, "guard.rules[0].action", "is missing", ""},
		{"an unknown action", `{"guard": {"rules": [{"tools": ["*"], "action": "alow"}]}}`, 1, 39, "guard.rules[0].action", "must be one of", "allow"},
		{"an unknown actor", `{"guard": {"rules": [{"tools": ["*"], "action": "deny", "actors": ["robot"]}]}}`, 1, 68, "guard.rules[0].actors[0]", "must be one of", ""},
		{"a bad match", `{"guard": {"rules": [{"tools": ["*"], "action": "deny", "match": {"path": "["}}]}}`, 1, 67, "guard.rules[0].match.path", "not a glob", ""},
		{"no command", `{"guard": {"rules": [{"tools": ["*"], "action": "deny", "match": {"command": " "}}]}}`, 1, 67, "guard.rules[0].match.command", "names no command", ""},
		{"a rate of nothing", `{"guard": {"rate": {"burst": 1}}}`, 1, 12, "guard.rate.calls_per_minute", "is missing", ""},
		{"a budget of nothing", `{"guard": {"budget": {}}}`, 1, 12, "guard.budget", "limits nothing", ""},
		{"a relative plugin", `{"tools": {"plugins": [{"name": "a", "wasm": "a.wasm"}]}}`, 1, 38, "tools.plugins[0].wasm", "absolute", ""},
		{"a plugin on local", `{"tools": {"plugins": [{"name": "a", "wasm": "/a.wasm", "profile": "local"}]}}`, 1, 57, "tools.plugins[0].profile", "needs one for wasm", ""},
		{"two of one name", `{"tools": {"plugins": [{"name": "a", "wasm": "/a"}, {"name": "a", "wasm": "/a"}]}}`, 1, 54, "tools.plugins[1].name", "two tools", ""},
		{"a pack without profiles", `{"tools": {"packs": [{"name": "a", "command": "/a"}]}}`, 1, 22, "tools.packs[0].profiles", "must name the profiles", ""},
		{"a pack without command", `{"tools": {"packs": [{"name": "a", "command": [], "profiles": ["local"]}]}}`, 1, 36, "tools.packs[0].command", "must name a program", ""},
		{"a pack of a number", `{"tools": {"packs": [{"name": "a", "command": 1, "profiles": ["local"]}]}}`, 1, 36, "tools.packs[0].command", "must be a program", ""},
		{"a pack without its source", `{"tools": {"packs": [{"name": "a", "command": ["sh", "${source}"], "profiles": ["local"]}]}}`, 1, 36, "tools.packs[0].command", "there is none", ""},
		{"a pack on wasm", `{"tools": {"packs": [{"name": "a", "command": "a", "profiles": ["p"]}]}, "execution_environments": {"profiles": {"p": {"backend": "wasm"}}}}`, 1, 65, "tools.packs[0].profiles[0]", "no executable runs", ""},
		{"keep nothing", `{"artifacts": {"keep": 0}}`, 1, 16, "artifacts.keep", "more than 0", ""},
		{"a project profile twice", `{"project_profiles": ["local", "local"]}`, 1, 32, "project_profiles[1]", "twice", ""},
		{"an unknown project profile", `{"project_profiles": ["x"]}`, 1, 23, "project_profiles[0]", "no profile", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("config.json", []byte(tt.text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Line != tt.line || e.Column != tt.column || e.Path != tt.path || !strings.Contains(e.Message, tt.message) || e.Suggestion != tt.suggestion {
				t.Errorf("got %d:%d, path %s, message %q, suggestion %q", e.Line, e.Column, e.Path, e.Message, e.Suggestion)
			}
			if !strings.HasPrefix(e.Error(), fmt.Sprintf("config.json:%d:%d: ", tt.line, tt.column)) {
				t.Errorf("the error does not name its place: %v", e)
			}
		})
	}
}

// What is wrong with one profile is also told beside the others.
func TestProblems(t *testing.T) {
	c, err := Parse("config.json", []byte(`{"execution_environments": {"profiles": {"good": {"backend": "local"}, "bad": {"backend": "docker"}}}}`))
	if err == nil {
		t.Fatal("no error")
	}
	if len(c.Profiles) != 2 || c.Profiles[0].Problem != nil || c.Profiles[1].Problem == nil {
		t.Fatalf("got %+v", c.Profiles)
	}
	if _, ok := c.Profile("bad"); ok {
		t.Error("a bad profile can be used")
	}
}

func TestNamedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	var e *Error
	if _, err := (Paths{Config: file, Named: true}).Source().Load(); !errors.As(err, &e) || e.File != file {
		t.Errorf("a named file that is not there: %v", err)
	}
	if _, err := (Paths{Config: file}).Source().Load(); err != nil {
		t.Errorf("a default file that is not there: %v", err)
	}
	if err := os.WriteFile(file, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := NamedFile(file).Load(); err != nil || c.Default != "isolated" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	var e *Error
	if _, err := Load(dir); !errors.As(err, &e) || e.File != dir || e.Line != 0 {
		t.Errorf("a directory: %v", err)
	}
	large := filepath.Join(dir, "large.json")
	if err := os.WriteFile(large, []byte(strings.Repeat(" ", MaxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(large); !errors.As(err, &e) || !strings.Contains(e.Message, "larger than") {
		t.Errorf("a large file: %v", err)
	}
	deep := filepath.Join(dir, "deep.json")
	if err := os.WriteFile(deep, []byte(strings.Repeat("[", MaxFile-1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(deep); !errors.As(err, &e) {
		t.Errorf("a deep file: %v", err)
	}
}

// A link that leads nowhere is no machine without a configuration.
func TestDangling(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "away"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Join(link, "config.json"), filepath.Join(link, "caisson", "config.json")} {
		var e *Error
		if _, err := Load(path); !errors.As(err, &e) || e.File != path || !strings.Contains(e.Message, link) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "away"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(filepath.Join(link, "caisson", "config.json")); err != nil {
		t.Errorf("no file behind a link that leads somewhere: %v", err)
	}
}

func TestSchema(t *testing.T) {
	s, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		t.Helper()
		standard, err := hujson.Standardize([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(standard, &v); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(v)
	}
	if err := validate(full); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		`{"gard": {}}`, `{"guard": null}`, `{"project_profiles": null}`, `{"execution": {"timeout": "fast"}}`,
		`{"execution_environments": {"profiles": {"local": {"backend": "local"}}}}`,
		`{"execution_environments": {"profiles": {"a b": {"backend": "local"}}}}`,
		`{"execution_environments": {"profiles": {"a": {"backend": "docker"}}}}`,
		`{"guard": {"rules": [{"tools": ["*"], "action": "alow"}]}}`,
	} {
		if validate(bad) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
	}
	// Editors show what it says of each member.
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), `"null"`) || !strings.Contains(string(raw), "How long one call may take") {
		t.Errorf("got %s", raw)
	}
}

func TestPaths(t *testing.T) {
	tests := []struct {
		name, goos string
		env        map[string]string
		want       Paths
	}{
		{"linux", "linux", map[string]string{"HOME": "/home/a"},
			Paths{"/home/a/.config/caisson/config.json", false, "/home/a/.local/state/caisson", "/home/a/.local/share/caisson", "/tmp/caisson-7"}},
		{"xdg", "linux", map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r"},
			Paths{"/c/caisson/config.json", false, "/s/caisson", "/d/caisson", "/r/caisson"}},
		{"relative variables count as none", "linux", map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "s"},
			Paths{"/home/a/.config/caisson/config.json", false, "/home/a/.local/state/caisson", "/home/a/.local/share/caisson", "/tmp/caisson-7"}},
		{"a file of one's own", "linux", map[string]string{"HOME": "/home/a", "CAISSON_CONFIG": "/x/y.json"},
			Paths{"/x/y.json", true, "/home/a/.local/state/caisson", "/home/a/.local/share/caisson", "/tmp/caisson-7"}},
		{"mac", "darwin", map[string]string{"HOME": "/Users/a"},
			Paths{"/Users/a/Library/Application Support/caisson/config.json", false, "/Users/a/Library/Application Support/caisson/state",
				"/Users/a/Library/Application Support/caisson/data", "/tmp/caisson-7"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := pathsFor(tt.goos, func(name string) string { return tt.env[name] }, 7)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := pathsFor("linux", func(string) string { return "" }, 7); err == nil {
		t.Error("paths without a home")
	}
}

// A service that a system has started has no HOME; its user has one.
func TestPathsWithoutHome(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "CAISSON_CONFIG"} {
		t.Setenv(name, "")
	}
	got, err := DefaultPaths()
	if err != nil || !strings.HasPrefix(got.State, u.HomeDir+"/") || !strings.HasPrefix(got.Config, u.HomeDir+"/") {
		t.Errorf("got %+v, %v, and the user's home is %s", got, err, u.HomeDir)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("{\"a\": \"\xff\"}"))
	f.Add([]byte(`{"execution_environments": {"profiles": {"a": {"backend": "docker", "mounts": [{}]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("config.json", text)
		if c == nil {
			t.Fatal("no configuration")
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Fatalf("an error without a place: %v", err)
		}
	})
}
