package profile_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

func parse(t *testing.T, text string) profile.Profile {
	t.Helper()
	p, err := profile.Parse("box", json.RawMessage(text), profile.Defaults{})
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return p
}

// minimal is the shortest profile of each backend.
var minimal = map[string]string{
	profile.Local:     `{"backend":"local"}`,
	profile.Docker:    `{"backend":"docker","image":"debian:12"}`,
	profile.SSH:       `{"backend":"ssh","host":"build"}`,
	profile.Apptainer: `{"backend":"apptainer","image":"box.sif"}`,
	profile.Modal:     `{"backend":"modal","image":"debian:12"}`,
	profile.Daytona:   `{"backend":"daytona","image":"debian:12"}`,
	profile.Vercel:    `{"backend":"vercel","image":"debian:12"}`,
	profile.Command:   `{"backend":"command","command":["adapter","--fast"]}`,
	profile.WASM:      `{"backend":"wasm"}`,
}

func TestConfined(t *testing.T) {
	for _, test := range []struct {
		mode     tool.Mode
		writable []string
		want     bool
	}{
		{"", nil, true},
		{tool.Standard, []string{"/srv"}, true},
		{tool.Standard, []string{"/srv", "/"}, false},
		{"", []string{"/"}, false},
		{tool.ReadOnly, []string{"/"}, true},
		{tool.Unconfined, nil, false},
	} {
		p := profile.Profile{PermissionMode: test.mode, WritablePaths: test.writable}
		if got := p.Confined(); got != test.want {
			t.Errorf("%s with %q: %v", test.mode, test.writable, got)
		}
	}
}

func TestDefaults(t *testing.T) {
	for kind, text := range minimal {
		t.Run(kind, func(t *testing.T) {
			p := parse(t, text)
			if p.Backend != kind || p.Name != "box" {
				t.Errorf("got %s profile %q", p.Backend, p.Name)
			}
			if p.Timeout != 5*time.Minute || p.MaxOutputBytes != 1<<20 || p.ShutdownTimeout == 0 {
				t.Errorf("limits: timeout %v, output %d, shutdown %v", p.Timeout, p.MaxOutputBytes, p.ShutdownTimeout)
			}
			if p.PermissionMode != tool.Standard || p.MaxPermissionMode != tool.Standard {
				t.Errorf("modes: %s, %s", p.PermissionMode, p.MaxPermissionMode)
			}
			if kind != profile.Local && kind != profile.WASM && (p.Workspace != "/workspace" || p.Lifetime != 600*time.Second) {
				t.Errorf("remote: workspace %q, lifetime %v", p.Workspace, p.Lifetime)
			}
		})
	}
	d := parse(t, minimal[profile.Docker])
	if d.Network != "none" || d.PidsLimit != 512 || !d.TmpfsNoexec || d.TmpfsSize != 64<<20 ||
		d.ReadOnlyRoot || d.Pull != "missing" || d.ContainerPolicy != profile.PolicyPerSession || d.CPUs != 0 || d.Memory != 0 {
		t.Errorf("docker: %+v", d)
	}
	if m := parse(t, minimal[profile.Modal]); m.CPUs != 2 || m.Memory != 2048<<20 || m.ShutdownTimeout != 90*time.Second {
		t.Errorf("modal: %+v", m)
	}
	if w := parse(t, minimal[profile.WASM]); w.Engine != "wazero" || w.MaxMemoryPages != 1024 || w.MaxFuel != 1e9 || !w.Deterministic || w.Network != "none" ||
		w.MaxExecutionTime != 30*time.Second || w.Lifetime != 10*time.Minute {
		t.Errorf("wasm: %+v", w)
	}
	if l := parse(t, minimal[profile.Local]); l.Shell != "/bin/bash" || l.EnvMode != "inherit" || !slices.Contains(l.DeniedCommands, "rm -rf /") {
		t.Errorf("local: %+v", l)
	}
	if c := parse(t, minimal[profile.Command]); c.ShutdownTimeout != time.Minute {
		t.Errorf("command: %+v", c)
	}
}

func TestMembers(t *testing.T) {
	tests := []struct {
		name, text string
		want       func(p profile.Profile) bool
	}{
		{"alias of apptainer", `{"backend":"singularity","image":"a"}`, func(p profile.Profile) bool { return p.Backend == profile.Apptainer }},
		{"alias of vercel", `{"backend":"vercel_sandbox","image":"a"}`, func(p profile.Profile) bool { return p.Backend == profile.Vercel }},
		{"bridge is enabled", `{"backend":"docker","image":"a","network":"bridge"}`, func(p profile.Profile) bool { return p.Network == "enabled" }},
		{"memory as a size", `{"backend":"docker","image":"a","memory":"2g"}`, func(p profile.Profile) bool { return p.Memory == 2<<30 }},
		{"the least memory", `{"backend":"docker","image":"a","memory_mb":16}`, func(p profile.Profile) bool { return p.Memory == 16<<20 }},
		{"memory in MiB", `{"backend":"docker","image":"a","memory_mb":512}`, func(p profile.Profile) bool { return p.Memory == 512<<20 }},
		{"daytona rounds memory up", `{"backend":"daytona","image":"a","memory_mb":1025}`, func(p profile.Profile) bool { return p.Memory == 2<<30 }},
		{"seconds", `{"backend":"local","timeout":90}`, func(p profile.Profile) bool { return p.Timeout == 90*time.Second }},
		{"a duration", `{"backend":"local","timeout":"2m"}`, func(p profile.Profile) bool { return p.Timeout == 2*time.Minute }},
		{"lifetime 0 is the default", `{"backend":"ssh","host":"h","lifetime_seconds":0}`, func(p profile.Profile) bool { return p.Lifetime == 600*time.Second }},
		{"shutdown", `{"backend":"ssh","host":"h","shutdown_timeout_ms":1500}`, func(p profile.Profile) bool { return p.ShutdownTimeout == 1500*time.Millisecond }},
		{"persistent policy", `{"backend":"docker","image":"a","container_policy":"persistent"}`, func(p profile.Profile) bool { return p.Shared && p.Persistent }},
		{"per call has a read-only root", `{"backend":"docker","image":"a","container_policy":"per_call"}`, func(p profile.Profile) bool { return p.ReadOnlyRoot }},
		{"no denied commands", `{"backend":"local","denied_commands":[]}`, func(p profile.Profile) bool { return len(p.DeniedCommands) == 0 }},
		{"a ceiling lowers the default mode", `{"backend":"local","max_permission_mode":"read_only"}`, func(p profile.Profile) bool { return p.PermissionMode == tool.ReadOnly }},
		{"mounts", `{"backend":"docker","image":"a","mounts":[{"source":"/data","target":"/mnt","readonly":true}]}`,
			func(p profile.Profile) bool {
				return reflect.DeepEqual(p.Mounts, []profile.Mount{{Source: "/data", Target: "/mnt", ReadOnly: true}})
			}},
		{"preopens", `{"backend":"wasm","preopens":["/::/srv:ro",{"host":"/b","guest":"/c"}]}`,
			func(p profile.Profile) bool {
				return reflect.DeepEqual(p.Preopens, []profile.Preopen{{Host: "/srv", Guest: "/", ReadOnly: true}, {Host: "/b", Guest: "/c"}})
			}},
		{"python is of no use", `{"backend":"modal","image":"a","python":"3.12"}`, func(p profile.Profile) bool { return len(p.Warnings) == 1 }},
		{"not deterministic", `{"backend":"wasm","deterministic":false}`, func(p profile.Profile) bool { return !p.Deterministic }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if p := parse(t, tt.text); !tt.want(p) {
				t.Errorf("%s gives %+v", tt.text, p)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct{ text, path, message, suggestion string }{
		{`{}`, "backend", "is missing", ""},
		{`[]`, "", "must be an object", ""},
		{`{"backend":"dokcer"}`, "backend", "unknown backend", "docker"},
		{`{"backend":"docker"}`, "image", "is missing", ""},
		{`{"backend":"ssh"}`, "host", "is missing", ""},
		{`{"backend":"command"}`, "command", "is missing", ""},
		{`{"backend":"docker","image":"a","nework":"none"}`, "nework", "unknown member", "network"},
		{`{"backend":"ssh","host":"h","image":"a"}`, "image", "it belongs to docker, apptainer, modal, daytona, vercel", ""},
		{`{"backend":"local","workspace":"/w"}`, "workspace", "it belongs to", ""},
		{`{"backend":"ssh","host":"h","network":"none"}`, "network", "it belongs to", ""},
		{`{"backend":"vercel","image":"a","memory_mb":1}`, "memory_mb", "it belongs to", ""},
		{`{"backend":"command","command":["a"],"shared":true}`, "shared", "it belongs to", ""},
		{`{"backend":"apptainer","image":"a","network":"host"}`, "network", "must be one of none, enabled", ""},
		{`{"backend":"docker","image":"a","network":"enable"}`, "network", "must be one of", "enabled"},
		{`{"backend":"wasm","network":"enabled"}`, "network", "must be one of none", ""},
		{`{"backend":"docker","image":3}`, "image", "must be a string", ""},
		{`{"backend":"docker","image":null}`, "image", "must be a string", ""},
		{`{"backend":"docker","image":""}`, "image", "must not be empty", ""},
		{`{"backend":"docker","image":"a","persistent":"yes"}`, "persistent", "must be true or false", ""},
		{`{"backend":"docker","image":"a","workspace":"work"}`, "workspace", "absolute", ""},
		{`{"backend":"docker","image":"a","workspace":"/a/../b"}`, "workspace", "absolute", ""},
		{`{"backend":"docker","image":"a","cpus":0}`, "cpus", "more than 0", ""},
		{`{"backend":"vercel","image":"a","cpus":1.5}`, "cpus", "whole number", ""},
		{`{"backend":"docker","image":"a","memory":512}`, "memory", "must be a size", ""},
		{`{"backend":"docker","image":"a","memory":"9x"}`, "memory", "must be a size", ""},
		{`{"backend":"docker","image":"a","memory_mb":15}`, "memory_mb", "at least 16 MiB", ""},
		{`{"backend":"docker","image":"a","memory":"16383k"}`, "memory", "at least 16 MiB", ""},
		{`{"backend":"docker","image":"a","memory":"1g","memory_mb":1}`, "memory", "clashes", ""},
		{`{"backend":"docker","image":"a","docker_host":"unix:///x","docker_context":"c"}`, "docker_context", "clashes", ""},
		{`{"backend":"docker","image":"a","docker_host":"/x.sock"}`, "docker_host", "endpoint", ""},
		{`{"backend":"docker","image":"a","mount_read_only":true}`, "mount_read_only", "needs host_workspace", ""},
		{`{"backend":"docker","image":"a","host_workspace":"${workspaceFolder}","workspace_source":"copy"}`, "workspace_source", "clashes", ""},
		{`{"backend":"docker","image":"a","host_workspace":"${home}/x"}`, "host_workspace", "only ${workspaceFolder}", ""},
		{`{"backend":"docker","image":"a","host_workspace":"${workspaceFolder}x"}`, "host_workspace", "a slash", ""},
		{`{"backend":"docker","image":"a","mounts":[{"source":"/a","target":"/proc/x"}]}`, "mounts[0].target", "nothing can be mounted", ""},
		{`{"backend":"docker","image":"a","mounts":[{"source":"/a","target":"/.caisson/bin"}]}`, "mounts[0].target", "nothing can be mounted", ""},
		{`{"backend":"docker","image":"a","mounts":[{"source":"/a","target":"/b"},{"source":"/c","target":"/b"}]}`, "mounts[1].target", "two mounts", ""},
		{`{"backend":"docker","image":"a","mounts":[{"source":"/a","target":"/workspace"}]}`, "mounts", "hides the workspace", ""},
		{`{"backend":"docker","image":"a","mounts":[{"source":"/a","traget":"/b"}]}`, "mounts[0].traget", "unknown member", "target"},
		{`{"backend":"docker","image":"a","container_policy":"persistent","shared":false}`, "shared", "clashes", ""},
		{`{"backend":"docker","image":"a","container_policy":"per_session","shared":true}`, "shared", "clashes", ""},
		{`{"backend":"docker","image":"a","container_policy":"per_call","persistent":true}`, "persistent", "clashes", ""},
		{`{"backend":"docker","image":"a","container_policy":"per_call","read_only_root":false}`, "read_only_root", "clashes", ""},
		{`{"backend":"docker","image":"a","platform":"arm64"}`, "platform", "platform", ""},
		{`{"backend":"docker","image":"a","allowed_hosts":["a b"]}`, "allowed_hosts[0]", "not the name of a host", ""},
		{`{"backend":"docker","image":"a","network":"host","allowed_hosts":["a"]}`, "allowed_hosts", "clashes", ""},
		{`{"backend":"local","permission_mode":"unconfined"}`, "permission_mode", "above max_permission_mode", ""},
		{`{"backend":"local","permission_mode":"readonly"}`, "permission_mode", "must be one of", "read_only"},
		{`{"backend":"local","timeout":"0s"}`, "timeout", "more than 0", ""},
		{`{"backend":"local","timeout":"soon"}`, "timeout", "must be a duration", ""},
		{`{"backend":"local","timeout":-1}`, "timeout", "negative", ""},
		{`{"backend":"local","env":{"A B":"c"}}`, `env["A B"]`, "cannot be the name of a variable", ""},
		{`{"backend":"local","forward_env":["A","A"]}`, "forward_env[1]", "twice", ""},
		{`{"backend":"local","forward_env":"A"}`, "forward_env", "list of strings", ""},
		{`{"backend":"ssh","host":"-oProxyCommand=x"}`, "host", "not the name of a host", ""},
		{`{"backend":"ssh","host":"h","port":70000}`, "port", "between 1 and 65535", ""},
		{`{"backend":"ssh","host":"h","shutdown_timeout_ms":2147483648}`, "shutdown_timeout_ms", "between", ""},
		{`{"backend":"ssh","host":"h","identity_file":"id"}`, "identity_file", "absolute", ""},
		{`{"backend":"wasm","max_memory_pages":65537}`, "max_memory_pages", "between", ""},
		{`{"backend":"wasm","preopens":["/srv"]}`, "preopens[0]", "guest::host", ""},
		{`{"backend":"wasm","preopens":["/job::/srv"]}`, "preopens[0].guest", "a job's own directory", ""},
		{`{"backend":"wasm","preopens":["work::/srv"]}`, "preopens[0].guest", "must be an absolute path", ""},
		{`{"backend":"wasm","preopens":["/a::/srv","/a::/tmp"]}`, "preopens[1]", "two directories at /a", ""},
		{`{"backend":"wasm","lifetime_seconds":1}`, "lifetime_seconds", "belongs to", ""},
		{`{"backend":"command","command":[]}`, "command", "must name a program", ""},
		{`{"backend":"local","backend":"docker"}`, "", "duplicate", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := profile.Parse("box", json.RawMessage(tt.text), profile.Defaults{})
			var e *profile.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Path.String() != tt.path || !strings.Contains(e.Message, tt.message) || e.Suggestion != tt.suggestion {
				t.Errorf("got path %q, message %q, suggestion %q", e.Path, e.Message, e.Suggestion)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "build-box", "A.b_c-1", strings.Repeat("x", 64)} {
		if err := profile.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "local", "-a", "a b", "ä", strings.Repeat("x", 65)} {
		if profile.CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "7b": 7, "2k": 2 << 10, "64m": 64 << 20, "64 MiB": 64 << 20, "3GB": 3 << 30, "1t": 1 << 40,
	} {
		if got, err := profile.ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "m", "-1", "1.5g", "1x", "9223372036854775808", "9999999999t", "1 2"} {
		if got, err := profile.ParseSize(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	for n, want := range map[int64]string{2 << 30: "2 GiB", 1536 << 20: "1536 MiB", 1000: "1000 bytes"} {
		if got := profile.FormatSize(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestSummary(t *testing.T) {
	for text, want := range map[string]string{
		minimal[profile.Local]: "this machine",
		`{"backend":"docker","image":"debian:12","cpus":1.5,"memory":"2g","persistent":true,"host_workspace":"/src"}`: "docker debian:12, works in /src, network none, 1.5 cpus, 2 GiB memory, persistent",
		`{"backend":"ssh","host":"build","user":"ci","port":2222}`:                                                    "ssh ci@build port 2222",
		minimal[profile.Command]: "adapter adapter",
		minimal[profile.WASM]:    "WebAssembly on wazero",
	} {
		if got := parse(t, text).Summary(); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// A profile survives being saved and read.
func TestSaved(t *testing.T) {
	for kind, text := range minimal {
		p := parse(t, text)
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back profile.Profile
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, back) {
			t.Errorf("%s: %+v came back as %+v", kind, p, back)
		}
	}
}
