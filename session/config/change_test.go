package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetDefault(t *testing.T) {
	const profiles = `"profiles": {"box": {"backend": "docker", "image": "a"}}`
	tests := map[string]struct{ before, after string }{
		"replaced": {
			"{\n  // mine\n  \"execution_environments\": {\n    \"default\": /* now */ \"local\", // why\n    " + profiles + ",\n  },\n}\n",
			"{\n  // mine\n  \"execution_environments\": {\n    \"default\": /* now */ \"box\", // why\n    " + profiles + ",\n  },\n}\n",
		},
		"added": {
			"{\n  \"execution_environments\": { // all\n    // those\n    " + profiles + "\n  }\n}",
			"{\n  \"execution_environments\": { // all\n    \"default\": \"box\",\n    // those\n    " + profiles + "\n  }\n}",
		},
		"added in one line": {
			`{"execution_environments":{` + profiles + `}}`,
			`{"execution_environments":{"default": "box", ` + profiles + `}}`,
		},
		"with a mark and CRLF": {
			"\ufeff{\r\n\t\"execution_environments\": {\r\n\t\t" + profiles + "\r\n\t}\r\n}\r\n",
			"\ufeff{\r\n\t\"execution_environments\": {\r\n\t\t\"default\": \"box\",\r\n\t\t" + profiles + "\r\n\t}\r\n}\r\n",
		},
		"behind a long comment": {
			"{\"execution_environments\": {/* a\n b */ " + profiles + "}}",
			"{\"execution_environments\": {\"default\": \"box\", /* a\n b */ " + profiles + "}}",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(file, []byte(test.before), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := SetDefault(file, "box"); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != test.after {
				t.Errorf("%v: got\n%q, want\n%q", err, got, test.after)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("the mode is %v, %v", info.Mode(), err)
			}
			if c, err := Load(file); err != nil || c.Default != "box" {
				t.Errorf("default %q, %v", c.Default, err)
			}
		})
	}
}

// What is not there is made, and stays valid when it is changed again.
func TestSetDefaultMakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "config.json")
	for range 2 {
		if err := SetDefault(file, "local"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(got), `"execution_environments": {"default": "local"}`) {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	// An empty section, and a file without one.
	for _, text := range []string{`{"execution_environments": {}}`, `{"guard": {}}`, "{\n  \"guard\": {}\n}"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := SetDefault(file, "local"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestSetDefaultRefuses(t *testing.T) {
	const text = `{"execution_environments": {"profiles": {"box": {"backend": "docker", "image": "a"}}}}`
	for name, test := range map[string]struct{ text, profile, want string }{
		"unknown": {text, "bocks", "there is no profile"},
		"near":    {text, "bx", `did you mean "box"`},
		"invalid": {`{"guard": 1}`, "local", "guard"},
		"torn":    {`{"guard"`, "local", "config.json:1"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := SetDefault(file, test.profile)
			var problem *Error
			if !errors.As(err, &problem) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
			if known := test.text == text; known && (problem == nil || !strings.Contains(problem.Hint, "local, box")) {
				t.Errorf("nothing is said of the profiles that there are: %v", err)
			}
			if got, _ := os.ReadFile(file); string(got) != test.text {
				t.Errorf("the file is %q now", got)
			}
		})
	}
}

// Where no file can be made the one that is there stays, and is not called wrong. A
// name as long as it may be has no room for the new file's.
func TestSetDefaultWithoutPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), strings.Repeat("c", 250))
	if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	problem, ok := errors.AsType[*Error](SetDefault(file, "local"))
	if !ok || !strings.Contains(problem.Message, "cannot be changed") || !strings.Contains(problem.Hint, "directory must be writable") {
		t.Errorf("%+v", problem)
	}
	if got, _ := os.ReadFile(file); string(got) != `{}` {
		t.Errorf("the file is %q now", got)
	}
}

// A link to the file stays one.
func TestSetDefaultThroughLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "config.json")
	if err := errors.Join(os.WriteFile(file, []byte(`{}`), 0o600), os.Symlink("real.json", link)); err != nil {
		t.Fatal(err)
	}
	if err := SetDefault(link, "local"); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "real.json" {
		t.Errorf("%q, %v", to, err)
	}
	if c, err := Load(link); err != nil || c.Default != "local" {
		t.Errorf("%v", err)
	}
	if got, _ := os.ReadFile(file); !strings.Contains(string(got), "default") {
		t.Errorf("%q", got)
	}
}
