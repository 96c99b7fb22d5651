package profile_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

const store = "00112233445566778899aabbccddeeff"

// The identities below must never change: a change loses the environments that
// exist under the old ones. A new format gets a new version instead.
func TestGoldenIdentities(t *testing.T) {
	golden := []struct{ text, session, want string }{
		{minimal[profile.Local], "s-1", "caisson-1b905cf9847cd1a08ea0eec74086d57f"},
		{minimal[profile.Docker], "s-1", "caisson-200031fb206738c44d25327062fe910b"},
		{minimal[profile.Docker], "s-2", "caisson-333b135f785447d1ff5b5bdabd9266cd"},
		{`{"backend":"docker","image":"debian:12","container_policy":"per_session","network":"bridge","cpus":2,"memory_mb":2048,
			"mounts":[{"source":"/data","target":"/mnt"}],"env":{"A":"b"},"timeout":"1m"}`, "s-1", "caisson-43d3af36cd2cc4e868307c239e734f50"},
		{`{"backend":"docker","image":"debian:12","shared":true}`, "s-1", "caisson-8732593d53f1f8620b34e61bf001a85c"},
		{`{"backend":"docker","image":"debian:12","shared":true}`, "s-2", "caisson-8732593d53f1f8620b34e61bf001a85c"},
		{minimal[profile.SSH], "s-1", "caisson-5c8cf127bf8cfb6e0401bccd48c33612"},
		{minimal[profile.WASM], "s-1", "caisson-52659a716302e729b743d5f84deaa8c8"},
	}
	for _, g := range golden {
		if got := parse(t, g.text).Identity(store, g.session); got != g.want {
			t.Errorf("%s in %s: %s, not %s", g.text, g.session, got, g.want)
		}
	}
}

// TestIdentityMembers gives every member another value, and says whether that
// makes another environment.
func TestIdentityMembers(t *testing.T) {
	base := `"backend":"docker","image":"debian:12"`
	before := parse(t, "{"+base+"}").Identity(store, "s")
	if !profile.IsIdentity(before) {
		t.Fatalf("%q is no identity", before)
	}
	for member, another := range map[string]bool{
		`"workspace":"/w"`: true, `"host_workspace":"/src"`: true, `"persistent":true`: true,
		`"mounts":[{"source":"/a","target":"/b"}]`: true, `"network":"enabled"`: true, `"cpus":1`: true,
		`"memory":"1g"`: true, `"pids_limit":100`: true, `"user":"me"`: true, `"read_only_root":true`: true,
		`"max_permission_mode":"unconfined"`: true, `"writable_paths":["/"]`: true, `"platform":"linux/arm64"`: true,
		`"docker_context":"far"`: true, `"runtime":"runsc"`: true, `"shm_size":"1g"`: true, `"network":"none"`: true,
		`"timeout":"1m"`: false, `"env":{"A":"b"}`: false, `"forward_env":["A"]`: false, `"lifetime_seconds":5`: false,
		`"shutdown_timeout_ms":5`: false, `"permission_mode":"read_only"`: false, `"pull":"always"`: false, `"worker":"/w"`: false,
	} {
		after := parse(t, "{"+base+","+member+"}").Identity(store, "s")
		if (after != before) != another {
			t.Errorf("%s: another environment: %t", member, after != before)
		}
	}
	p := parse(t, "{"+base+"}")
	for what, other := range map[string]string{
		"store":   p.Identity("ff"+store[2:], "s"),
		"session": p.Identity(store, "t"),
	} {
		if other == before {
			t.Errorf("another %s has the same environment", what)
		}
	}
	p.Name = "other"
	if p.Identity(store, "s") == before {
		t.Error("another profile's name has the same environment")
	}
}

func TestIdentityIsSpelledOnce(t *testing.T) {
	a := parse(t, `{"backend":"docker","image":"a","mounts":[{"source":"/s","target":"/t"}],"cpus":2}`)
	b := parse(t, `{"cpus":2.0,"mounts":[ {"target":"/t", "source":"/s"} ],"image":"a","backend":"docker"}`)
	if a.Identity(store, "s") != b.Identity(store, "s") {
		t.Error("order and spaces make another environment")
	}
}

func TestConstrain(t *testing.T) {
	yes, no := true, false
	docker := `{"backend":"docker","image":"a","network":"enabled","memory":"2g","tmpfs_noexec":false}`
	tests := []struct {
		name, text string
		limits     profile.Limits
		kind       tool.Kind // "" for one that holds
		want       func(p profile.Profile) bool
		same       bool // the environment stays the same
	}{
		{"nothing", docker, profile.Limits{}, "", func(profile.Profile) bool { return true }, true},
		{"network", docker, profile.Limits{Network: "none"}, "", func(p profile.Profile) bool { return p.Network == "none" }, false},
		{"network wider", minimal[profile.Docker], profile.Limits{Network: "enabled"}, tool.Denied, nil, false},
		{"network of ssh", minimal[profile.SSH], profile.Limits{Network: "none"}, tool.Unsupported, nil, false},
		{"memory", docker, profile.Limits{Memory: 1 << 30}, "", func(p profile.Profile) bool { return p.Memory == 1<<30 }, false},
		{"more memory is met", docker, profile.Limits{Memory: 4 << 30}, "", func(p profile.Profile) bool { return p.Memory == 2<<30 }, true},
		{"cpus of unlimited", docker, profile.Limits{CPUs: 1}, "", func(p profile.Profile) bool { return p.CPUs == 1 }, false},
		{"the least memory", docker, profile.Limits{Memory: 16 << 20}, "", func(p profile.Profile) bool { return p.Memory == 16<<20 }, false},
		{"less than the least memory", docker, profile.Limits{Memory: 16<<20 - 1}, tool.Unsupported, nil, false},
		{"memory of vercel", minimal[profile.Vercel], profile.Limits{Memory: 1}, tool.Unsupported, nil, false},
		{"part of a cpu at daytona", minimal[profile.Daytona], profile.Limits{CPUs: 0.5}, tool.Unsupported, nil, false},
		{"noexec", docker, profile.Limits{TmpfsNoexec: &yes}, "", func(p profile.Profile) bool { return p.TmpfsNoexec }, false},
		{"exec", minimal[profile.Docker], profile.Limits{TmpfsNoexec: &no}, tool.Denied, nil, false},
		{"noexec of local", minimal[profile.Local], profile.Limits{TmpfsNoexec: &yes}, tool.Unsupported, nil, false},
		{"image", docker, profile.Limits{Image: "b"}, "", func(p profile.Profile) bool { return p.Image == "b" }, false},
		{"image as an option", docker, profile.Limits{Image: "--privileged"}, tool.InvalidParams, nil, false},
		{"image of local", minimal[profile.Local], profile.Limits{Image: "b"}, tool.Unsupported, nil, false},
		{"timeout", docker, profile.Limits{Timeout: 1}, "", func(p profile.Profile) bool { return p.Timeout == 1 }, true},
		{"output", docker, profile.Limits{MaxOutputBytes: 1}, "", func(p profile.Profile) bool { return p.MaxOutputBytes == 1 }, true},
		{"more time is met", docker, profile.Limits{Timeout: time.Hour}, "", func(p profile.Profile) bool { return p.Timeout == profile.DefaultTimeout }, true},
		{"more output is met", docker, profile.Limits{MaxOutputBytes: 1 << 40}, "", func(p profile.Profile) bool { return p.MaxOutputBytes == profile.DefaultMaxOutputBytes }, true},
		{"read only", docker, profile.Limits{ReadOnly: true}, "", func(p profile.Profile) bool {
			return p.PermissionMode == tool.ReadOnly && p.MaxPermissionMode == tool.ReadOnly
		}, false},
		{"pids", docker, profile.Limits{PidsLimit: 10}, "", func(p profile.Profile) bool { return p.PidsLimit == 10 }, false},
		{"more pids are met", docker, profile.Limits{PidsLimit: 513}, "", func(p profile.Profile) bool { return p.PidsLimit == 512 }, true},
		{"pids of modal", minimal[profile.Modal], profile.Limits{PidsLimit: 10}, tool.Unsupported, nil, false},
		{"memory of a guest", minimal[profile.WASM], profile.Limits{Memory: 1<<20 + 1}, "", func(p profile.Profile) bool { return p.MaxMemoryPages == 16 }, false},
		{"more memory of a guest is met", minimal[profile.WASM], profile.Limits{Memory: 1 << 30}, "", func(p profile.Profile) bool { return p.MaxMemoryPages == 1024 }, true},
		{"less memory than a page", minimal[profile.WASM], profile.Limits{Memory: 1}, tool.Unsupported, nil, false},
		{"a guest has one thread", minimal[profile.WASM], profile.Limits{CPUs: 1}, "", func(profile.Profile) bool { return true }, true},
		{"a part of it", minimal[profile.WASM], profile.Limits{CPUs: 0.5}, tool.Unsupported, nil, false},
		{"no processes and no programs", minimal[profile.WASM], profile.Limits{PidsLimit: 1, TmpfsNoexec: &yes, Network: "none"}, "", func(profile.Profile) bool { return true }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := parse(t, tt.text)
			copied := parse(t, tt.text)
			got, err := before.Constrain(tt.limits)
			if tt.kind != "" {
				if err == nil || tool.KindOf(err) != tt.kind {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !tt.want(got) {
				t.Errorf("got %+v", got)
			}
			if !reflect.DeepEqual(before, copied) {
				t.Error("the profile itself was changed")
			}
			if same := got.Identity(store, "s") == before.Identity(store, "s"); same != tt.same {
				t.Errorf("same environment: %t", same)
			}
		})
	}
}

func TestInFolder(t *testing.T) {
	p := parse(t, `{"backend":"docker","image":"a","shared":true,"host_workspace":"${workspaceFolder}",
		"mounts":[{"source":"${workspaceFolder}/data","target":"/data"},{"source":"/fixed","target":"/fixed"}]}`)
	a, err := p.InFolder("/home/a")
	if err != nil {
		t.Fatal(err)
	}
	if a.HostWorkspace != "/home/a" || a.Mounts[0].Source != "/home/a/data" || a.Mounts[1].Source != "/fixed" {
		t.Errorf("got %q, %v", a.HostWorkspace, a.Mounts)
	}
	if p.Mounts[0].Source != "${workspaceFolder}/data" {
		t.Error("the profile itself was changed")
	}
	b, err := p.InFolder("/home/b")
	if err != nil {
		t.Fatal(err)
	}
	if a.Identity(store, "s") == b.Identity(store, "s") {
		t.Error("two folders share one environment")
	}
	again, err := a.InFolder("/home/a")
	if err != nil || !reflect.DeepEqual(a, again) {
		t.Errorf("twice is not once: %+v, %v", again, err)
	}
	if _, err := p.InFolder(""); tool.KindOf(err) != tool.ConfigInvalid {
		t.Errorf("without a folder: %v", err)
	}
	fixed := parse(t, minimal[profile.Docker])
	if got, err := fixed.InFolder(""); err != nil || !reflect.DeepEqual(got, fixed) {
		t.Errorf("a profile that needs none: %v", err)
	}
}

// A shared environment holds a copy of one folder.
func TestCopyIsOfOneFolder(t *testing.T) {
	p := parse(t, `{"backend":"docker","image":"a","shared":true,"workspace_source":"copy"}`)
	seen := map[string]bool{}
	for _, folder := range []string{"/home/a", "/home/b"} {
		in, err := p.InFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		seen[in.Identity(store, "s")] = true
	}
	if len(seen) != 2 {
		t.Error("two folders share one copy")
	}
}

func TestEnvironment(t *testing.T) {
	p := parse(t, `{"backend":"local","env":{"LITERAL":"1","BOTH":"mine"},"forward_env":["TOKEN","BOTH"],
		"env_allowlist":["MAYBE","ABSENT"],"env_allow_prefixes":["LC_"]}`)
	got, err := p.Environment([]string{"TOKEN=s3cret=", "MAYBE=", "LC_ALL=C", "OTHER=x", "BOTH=theirs", "=C:=x"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"LITERAL": "1", "BOTH": "mine", "TOKEN": "s3cret=", "MAYBE": "", "LC_ALL": "C"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	_, err = p.Environment([]string{"BOTH=s3cret"})
	if tool.KindOf(err) != tool.ConfigInvalid || !strings.Contains(err.Error(), "TOKEN") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a missing variable: %v", err)
	}
}

// described checks that editors have something to show for every member.
func described(t *testing.T, at string, s *jsonschema.Schema) {
	t.Helper()
	if s == nil {
		return
	}
	for name, member := range s.Properties {
		if member.Description == "" {
			t.Errorf("%s.%s has no description", at, name)
		}
		described(t, at+"."+name, member)
	}
	described(t, at, s.Items)
	for _, one := range s.OneOf {
		described(t, at, one)
	}
}

// Every member of the table is in the schema, and the schema is one.
func TestSchema(t *testing.T) {
	s := profile.Schema()
	described(t, "profile", s)
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range profile.Kinds() {
		for _, m := range profile.Members(kind) {
			if s.Properties[m] == nil {
				t.Errorf("%s.%s has no schema", kind, m)
			}
		}
		var v any
		if err := json.Unmarshal([]byte(minimal[kind]), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, bad := range []string{
		`{"backend":"ssh","host":"h","image":"a"}`, `{"backend":"docker"}`, `{"backend":"docker","image":"a","network":"none","x":1}`,
		`{"backend":"wasm","network":"enabled"}`, `{"backend":"apptainer","image":"a","network":"host"}`, `{}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(bad), &v); err != nil {
			t.Fatal(err)
		}
		if resolved.Validate(v) == nil {
			t.Errorf("%s is valid", bad)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"image", "memory_mb", "network", "max_fuel"}
	for name, want := range map[string]string{
		"imgae": "image", "memorymb": "memory_mb", "Network": "network", "zzz": "", "": "", strings.Repeat("x", 1000): "",
	} {
		if got := profile.Nearest(name, known); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// What is made for one use is gone after it, whatever its profile keeps.
func TestOneOff(t *testing.T) {
	p := parse(t, `{"backend":"docker","image":"a","container_policy":"persistent"}`)
	if !p.Shared || !p.Persistent {
		t.Fatalf("parsed %+v", p)
	}
	one := p.OneOff()
	if one.Shared || one.Persistent || one.ContainerPolicy != profile.PolicyPerSession || one.Image != "a" {
		t.Errorf("got %+v", one)
	}
	if one.Identity(store, "a") == one.Identity(store, "b") {
		t.Error("two uses have one environment")
	}
	if each := parse(t, `{"backend":"docker","image":"a","container_policy":"per_call"}`).OneOff(); each.ContainerPolicy != profile.PolicyPerCall {
		t.Errorf("got %+v", each)
	}
}
