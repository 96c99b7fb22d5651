package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestErrors(t *testing.T) {
	b := newBench(t, map[string]string{"file": "x"})
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(b.dir, "out")); err != nil {
		t.Fatal(err)
	}
	var unknown *tool.Error
	if err := b.fails(tool.ToolNotFound, request(t, "nothing", nil)); !errors.As(err, &unknown) || !strings.Contains(unknown.Hint, "glob, grep") {
		t.Errorf("the hint does not name the tools: %v", err)
	}
	for _, name := range []string{"bash", "git", "process"} {
		b.fails(tool.Unsupported, request(t, name, nil))
	}
	for _, raw := range []string{"[]", "1", `"x"`, "{", `{"path":"a","path":"b"}`} {
		b.fails(tool.InvalidParams, tool.Request{Name: "read_file", Arguments: json.RawMessage(raw)})
	}
	for _, name := range []string{"read_file", "write_file", "edit_file", "list_files", "present_artifact", "grep", "glob"} {
		for _, path := range []string{"..", "/etc", "out", "out/x", "a/../../b"} {
			b.fails(tool.PathOutsideRoot, request(t, name, args{"path": path, "content": "", "old_text": "a", "new_text": "b", "pattern": "x"}.only(t, name)))
		}
	}
	b.refused("path is missing", "read_file", nil)
	b.refused("content is missing", "write_file", args{"path": "x"})
	b.refused("path must be a string", "read_file", args{"path": 1})
	b.refused("offset must be an integer", "read_file", args{"path": "file", "offset": "1"})
	b.refused("offset must be an integer", "read_file", args{"path": "file", "offset": 1.5})
	b.refused("replace_all must be true or false", "edit_file", args{"path": "file", "old_text": "x", "new_text": "y", "replace_all": "yes"})
	b.refused("there is no file", "read_file", args{"path": "nothing"})
	r, err := b.Call(t.Context(), tool.Request{Name: "write_file", Arguments: json.RawMessage(`{"path":"x","content":"\ud83d"}`)})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].Text, "content holds text that is not valid Unicode") {
		t.Errorf("half a character: %v, %v", r, err)
	}
}

// TestUnknownArguments refuses what a tool would otherwise do differently than
// was meant, and names what was probably meant.
func TestUnknownArguments(t *testing.T) {
	b := newBench(t, map[string]string{"file": "x"}, func(o *Options) { o.Commands = new(fakeCommands) })
	for _, d := range b.Descriptions() {
		b.refused(d.Name+` has no argument "zzz", nothing was done. Its arguments are `, d.Name, args{"zzz": nil})
	}
	for _, test := range []struct {
		tool  string
		a     args
		words string
	}{
		{"edit_file", args{"path": "file", "old_string": "x", "new_string": "y"}, "did you mean new_text?"},
		{"edit_file", args{"path": "file", "old_text": "x", "new_text": "y", "replaceAll": true}, "did you mean replace_all?"},
		{"edit_file", args{"path": "file", "old_text": "x", "new_text": "y", "new_string": "y"}, "did you mean new_text?"},
		{"edit_file", args{"path": "file", "old_text": "x", "new_text": "y", "old_string": "y"}, "did you mean old_text?"},
		{"write_file", args{"file_path": "file", "content": "y"}, "did you mean path?"},
		{"write_file", args{"path": "file", "content": "y", "creat_only": true}, "did you mean create_only?"},
		{"write_file", args{"path": "file", "content": "y", "Content": "z"}, "did you mean content?"},
		{"bash", args{"command": "true", "timeout": 1}, "did you mean timeout_seconds?"},
		{"bash", args{"command": "true", "background": true}, "did you mean run_in_background?"},
		{"present_artifact", args{"path": "file", "description": "x"}, "Its arguments are path."},
	} {
		b.refused(test.words, test.tool, test.a)
	}
	if b.get("file") != "x" {
		t.Error("a call with an unknown argument wrote")
	}
}

func TestModes(t *testing.T) {
	b := newBench(t, map[string]string{"file": "x"})
	write := request(t, "write_file", args{"path": "new", "content": "x"})
	edit := request(t, "edit_file", args{"path": "file", "old_text": "x", "new_text": "y"})
	for _, r := range []tool.Request{write, edit} {
		r.Mode = tool.ReadOnly
		b.fails(tool.Denied, r)
		r.Mode = tool.Unconfined
		b.fails(tool.Denied, r)
		r.Mode = "nonsense"
		b.fails(tool.Denied, r)
		r.Mode, r.Actor.Kind = tool.Standard, tool.ActorSideChat
		b.fails(tool.Denied, r)
	}
	read := request(t, "read_file", args{"path": "file"})
	read.Mode = tool.ReadOnly
	if r, err := b.Call(t.Context(), read); err != nil || r.IsError {
		t.Errorf("a read in read_only: %v, %v", r, err)
	}
	if b.get("file") != "x" {
		t.Error("the file was written")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "new")); err == nil {
		t.Error("a file was made")
	}
	// A ceiling of read_only is the default too.
	b = newBench(t, nil, func(o *Options) { o.Ceiling = tool.ReadOnly })
	b.fails(tool.Denied, write)
	if _, err := b.WriteFile(t.Context(), "new", nil); tool.KindOf(err) != tool.Denied {
		t.Errorf("WriteFile: %v", err)
	}
}

func TestEndedCalls(t *testing.T) {
	b := newBench(t, map[string]string{"file": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"read_file", "write_file", "edit_file", "list_files", "present_artifact", "grep", "glob"} {
		r := request(t, name, args{"path": "file", "content": "", "old_text": "x", "new_text": "b", "pattern": "x"}.only(t, name))
		if _, err := b.Call(ctx, r); tool.KindOf(err) != tool.Cancelled {
			t.Errorf("%s, cancelled: %v", name, err)
		}
		r.Timeout = time.Nanosecond
		b.fails(tool.Timeout, r)
	}
	if b.get("file") != "x" {
		t.Error("a call that had ended wrote")
	}
}

// TestDescriptions compares the schemas with what the tools decode.
func TestDescriptions(t *testing.T) {
	all := Descriptions()
	if !slices.IsSortedFunc(all, func(a, b tool.Description) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Error("they are not sorted")
	}
	types := map[string]any{
		"bash": bashArgs{}, "edit_file": editArgs{}, "git": gitArgs{}, "glob": globArgs{}, "grep": grepArgs{}, "list_files": listArgs{},
		"present_artifact": presentArgs{}, "process": processArgs{}, "read_file": readArgs{}, "write_file": writeArgs{},
	}
	for _, d := range all {
		c := jsonschema.NewCompiler()
		var schema map[string]any
		if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if err := c.AddResource("schema.json", schema); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile("schema.json"); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		properties := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		decoded := reflect.TypeOf(types[d.Name])
		if decoded == nil || decoded.NumField() != len(properties) {
			t.Errorf("%s: %d members described, decoded is %v", d.Name, len(properties), decoded)
			continue
		}
		for i := range decoded.NumField() {
			f := decoded.Field(i)
			name := f.Tag.Get("json")
			if properties[name] == nil {
				t.Errorf("%s: %s is not described", d.Name, name)
			}
			if _, needed := f.Tag.Lookup("required"); needed != slices.Contains(required, any(name)) {
				t.Errorf("%s: %s is described and decoded differently", d.Name, name)
			}
		}
		if d.Description == "" || d.Group == "" {
			t.Errorf("%s lacks words", d.Name)
		}
	}
	b := newBench(t, nil)
	if n := len(b.Descriptions()); n != 7 {
		t.Errorf("a set without commands describes %d tools", n)
	}
	b = newBench(t, nil, func(o *Options) { o.Commands = &fakeCommands{} })
	if n := len(b.Descriptions()); n != len(all) {
		t.Errorf("a full set describes %d tools", n)
	}
}

// Who routes calls by their names knows the groups of all tools that there are.
func TestGroups(t *testing.T) {
	var names []string
	for _, d := range Descriptions() {
		names = append(names, d.Name)
		if got := tool.GroupOf(d.Name); got != d.Group {
			t.Errorf("%s is taken for one of %s, and is one of %s", d.Name, got, d.Group)
		}
	}
	if known := slices.Sorted(slices.Values(tool.BuiltIn())); !slices.Equal(known, names) {
		t.Errorf("known are %q, and there are %q", known, names)
	}
	if got := tool.GroupOf("another"); got != tool.GroupPlugins {
		t.Errorf("another tool is taken for one of %s", got)
	}
}
