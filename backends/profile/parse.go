package profile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Defaults is what a profile takes from the rest of the configuration.
type Defaults struct {
	Timeout        time.Duration // of one call
	MaxOutputBytes int64         // of one command
}

// The defaults of members and of the configuration around profiles.
const (
	DefaultTimeout        = 5 * time.Minute
	DefaultMaxOutputBytes = 1 << 20
)

// MinMemory is what an environment has at least, in bytes. In a container the first
// process and a worker that has run a command take 6 MiB, and 11 where the worker is
// the whole program; with 10 the kernel has ended the first process for want of memory,
// and with it all that was there. The rest is for a small command.
const MinMemory = 16 << 20

const (
	defaultWorkspace        = "/workspace"
	defaultLifetime         = 10 * time.Minute
	defaultPidsLimit        = 512
	defaultTmpfsSize        = 64 << 20
	defaultCloudCPUs        = 2
	defaultCloudMemory      = 2048 << 20
	defaultMaxMemoryPages   = 1024
	defaultMaxFuel          = 1_000_000_000
	defaultMaxExecutionTime = 30 * time.Second

	// Budgets from the end of a connection to the exit of what is behind it.
	nativeShutdown  = 7 * time.Second
	cloudShutdown   = 90 * time.Second
	commandShutdown = 60 * time.Second
)

// deniedCommands destroy a machine and are never what was meant.
func deniedCommands() []string {
	return []string{
		"rm -rf /", "rm -rf /*", "rm -rf ~", "rm -rf --no-preserve-root",
		"dd if=/dev/zero", "dd if=/dev/random", "dd if=/dev/urandom",
		"mkfs", "wipefs", "shutdown", "reboot", "halt", "poweroff",
	}
}

// BuiltIn is the profile "local", which always exists.
func BuiltIn(d Defaults) Profile {
	p := Profile{Name: Local, Backend: Local}
	p.fill(d, nil)
	return p
}

// Modules is the name of the built-in profile that registered WebAssembly tools
// run in which have no other. No written profile can be called so.
const Modules = "wasm:built-in"

// BuiltInModules is the profile [Modules]: the defaults of wasm, and no directory.
func BuiltInModules(d Defaults) Profile {
	p := Profile{Name: Modules, Backend: WASM}
	p.fill(d, nil)
	return p
}

// Parse validates the profile that is written as raw, one JSON object, and
// fills in its defaults. An error is an [*Error] whose path begins below the
// profile. The name is not checked; see [CheckName].
func Parse(name string, raw json.RawMessage, d Defaults) (Profile, error) {
	p, err := parse(name, jsontext.Value(raw), d)
	if err != nil {
		return Profile{}, err
	}
	return p, nil
}

func parse(name string, raw jsontext.Value, d Defaults) (Profile, *Error) {
	p := Profile{Name: name}
	written, err := object(raw)
	if err != nil {
		return p, err
	}
	if p.Backend, err = backendOf(written); err != nil {
		return p, err
	}
	members := table()
	present := map[string]bool{}
	for _, w := range written {
		if w.name == "backend" {
			continue
		}
		row, err := p.row(members, w.name)
		if err != nil {
			return p, err
		}
		if err := row.kind.read(&p, w.value).below(w.name); err != nil {
			return p, err
		}
		present[w.name] = true
		if row.identity {
			if err := p.write(w.name, w.value); err != nil {
				return p, err
			}
		}
	}
	if err := p.clashes(present); err != nil {
		return p, err
	}
	p.fill(d, present)
	if err := p.modes(); err != nil {
		return p, err
	}
	return p, nil
}

// assignment is one member of an object as it was written.
type assignment struct {
	name  string
	value jsontext.Value
}

// object splits an object into its members, refusing doubled names.
func object(v jsontext.Value) ([]assignment, *Error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, wrong("must be an object")
	}
	var members []assignment
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, wrong("%v", err)
		}
		name := t.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, wrong("%v", err)
		}
		members = append(members, assignment{name, value.Clone()})
	}
	return members, nil
}

func backendOf(written []assignment) (string, *Error) {
	for _, w := range written {
		if w.name != "backend" {
			continue
		}
		s, err := value[string](w.value, "a string")
		if err != nil {
			return "", err.below("backend")
		}
		kind, ok := CanonicalKind(s)
		if !ok {
			err := at("backend", "unknown backend %q: it must be one of %s", s, strings.Join(Kinds(), ", "))
			err.Suggestion = Nearest(s, spellings(Kinds()...))
			return "", err
		}
		return kind, nil
	}
	return "", at("backend", "is missing: it must be one of %s", strings.Join(Kinds(), ", "))
}

// row finds the member for the profile's backend, or says where it belongs and
// what may have been meant.
func (p *Profile) row(members []member, name string) (member, *Error) {
	var elsewhere set
	var ours []string
	for _, m := range members {
		switch {
		case m.name == name && p.in(m.backends):
			return m, nil
		case m.name == name:
			elsewhere |= m.backends
		case p.in(m.backends):
			ours = append(ours, m.name)
		}
	}
	if elsewhere != 0 {
		return member{}, at(name, "a %s profile has no %q: it belongs to %s",
			p.Backend, name, strings.Join(elsewhere.names(), ", "))
	}
	err := at(name, "unknown member %q", name)
	err.Suggestion = Nearest(name, append(ours, "backend"))
	return member{}, err
}

// write keeps a member as it was written.
func (p *Profile) write(name string, v jsontext.Value) *Error {
	c := v.Clone()
	if err := c.Canonicalize(); err != nil {
		return at(name, "%v", err)
	}
	if p.Written == nil {
		p.Written = map[string]json.RawMessage{}
	}
	p.Written[name] = json.RawMessage(c)
	return nil
}

// clashes refuses members that contradict each other or miss one that they
// need. The members in present are the written ones.
func (p *Profile) clashes(present map[string]bool) *Error {
	both := func(a, b string) bool { return present[a] && present[b] }
	switch {
	case p.in(images) && !present["image"]:
		return at("image", "is missing: a %s profile needs one", p.Backend)
	case p.in(inSSH) && !present["host"]:
		return at("host", "is missing: an ssh profile needs one")
	case p.in(inCommand) && !present["command"]:
		return at("command", "is missing: a command profile needs one")
	case both("memory", "memory_mb"):
		return at("memory", "clashes with memory_mb: write one of them")
	case p.in(images) && p.Memory > 0 && p.Memory < MinMemory:
		name := "memory"
		if present["memory_mb"] {
			name = "memory_mb"
		}
		return at(name, "must be at least %s, of which what runs the commands takes most", FormatSize(MinMemory))
	case both("docker_host", "docker_context"):
		return at("docker_context", "clashes with docker_host: write one of them")
	case present["mount_read_only"] && !present["host_workspace"]:
		return at("mount_read_only", "needs host_workspace")
	case present["host_workspace"] && p.WorkspaceSource == "copy":
		return at("workspace_source", "copy clashes with host_workspace, which is the opened folder's own place already")
	case present["allowed_hosts"] && p.Network == "host":
		return at("allowed_hosts", "clashes with the network of the host, which cannot be limited")
	case p.in(inVercel|inDaytona) && p.CPUs != float64(int64(p.CPUs)):
		return at("cpus", "must be a whole number: %s has no parts of one", p.Backend)
	}
	for _, m := range p.Mounts {
		if m.Target == p.workspace() {
			return at("mounts", "one of them hides the workspace at %s: use host_workspace", m.Target)
		}
	}
	return p.policyClashes(present)
}

func (p *Profile) policyClashes(present map[string]bool) *Error {
	clash := func(member string, v bool) *Error {
		return at(member, "%t clashes with container_policy %s", v, p.ContainerPolicy)
	}
	switch p.ContainerPolicy {
	case PolicyPersistent:
		if present["shared"] && !p.Shared {
			return clash("shared", false)
		}
		if present["persistent"] && !p.Persistent {
			return clash("persistent", false)
		}
	case PolicyPerSession:
		if p.Shared {
			return clash("shared", true)
		}
	case PolicyPerCall:
		if p.Shared {
			return clash("shared", true)
		}
		if p.Persistent {
			return clash("persistent", true)
		}
		if present["read_only_root"] && !p.ReadOnlyRoot {
			return clash("read_only_root", false)
		}
	}
	return nil
}

// modes refuses a default mode above the ceiling, which no call could use.
func (p *Profile) modes() *Error {
	if !p.PermissionMode.Within(p.MaxPermissionMode) {
		return at("permission_mode", "%s is above max_permission_mode, which is %s", p.PermissionMode, p.MaxPermissionMode)
	}
	return nil
}

func (p *Profile) workspace() string {
	if p.Workspace == "" {
		return defaultWorkspace
	}
	return p.Workspace
}

// fill gives every member that was not written its default.
func (p *Profile) fill(d Defaults, present map[string]bool) {
	fallback(&p.Timeout, d.Timeout)
	fallback(&p.Timeout, DefaultTimeout)
	fallback(&p.MaxOutputBytes, d.MaxOutputBytes)
	fallback(&p.MaxOutputBytes, DefaultMaxOutputBytes)
	fallback(&p.MaxPermissionMode, tool.Standard)
	fallback(&p.PermissionMode, narrower(tool.Standard, p.MaxPermissionMode))
	fallback(&p.ShutdownTimeout, p.shutdownBudget())

	if p.in(remote) {
		fallback(&p.Workspace, defaultWorkspace)
		fallback(&p.Lifetime, defaultLifetime)
	}
	if p.in(images | inSSH) {
		fallback(&p.WorkspaceSource, "empty")
	}
	if p.in(images | inWASM) {
		fallback(&p.Network, "none")
	}
	switch p.Backend {
	case Local:
		fallback(&p.Lifetime, defaultLifetime)
		fallback(&p.Shell, "/bin/bash")
		fallback(&p.EnvMode, "inherit")
		if !present["denied_commands"] {
			p.DeniedCommands = deniedCommands()
		}
	case Docker:
		p.fillDocker(present)
	case Modal, Daytona:
		fallback(&p.CPUs, defaultCloudCPUs)
		fallback(&p.Memory, defaultCloudMemory)
	case WASM:
		fallback(&p.Lifetime, defaultLifetime)
		fallback(&p.Engine, "wazero")
		fallback(&p.MaxMemoryPages, defaultMaxMemoryPages)
		fallback(&p.MaxFuel, defaultMaxFuel)
		fallback(&p.MaxExecutionTime, defaultMaxExecutionTime)
		if !present["deterministic"] {
			p.Deterministic = true
		}
	}
	if p.Backend == Daytona {
		const gib = 1 << 30
		p.Memory = (p.Memory + gib - 1) / gib * gib
	}
}

func (p *Profile) fillDocker(present map[string]bool) {
	fallback(&p.ContainerPolicy, PolicyPerSession)
	if p.ContainerPolicy == PolicyPersistent {
		p.Shared, p.Persistent = true, true
	}
	if !present["read_only_root"] {
		p.ReadOnlyRoot = p.ContainerPolicy == PolicyPerCall
	}
	if !present["tmpfs_noexec"] {
		p.TmpfsNoexec = true
	}
	fallback(&p.PidsLimit, defaultPidsLimit)
	fallback(&p.TmpfsSize, defaultTmpfsSize)
	fallback(&p.Pull, "missing")
}

func (p *Profile) shutdownBudget() time.Duration {
	switch {
	case p.in(clouds):
		return cloudShutdown
	case p.in(inCommand):
		return commandShutdown
	}
	return nativeShutdown
}

// fallback sets v when it is zero.
func fallback[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// narrower is the narrower of two modes.
func narrower(a, b tool.Mode) tool.Mode {
	if a.Within(b) {
		return a
	}
	return b
}

// Members are the names of the members that a profile of the backend may have,
// sorted.
func Members(kind string) []string {
	p := Profile{Backend: kind}
	names := []string{"backend"}
	for _, m := range table() {
		if p.in(m.backends) {
			names = append(names, m.name)
		}
	}
	slices.Sort(names)
	return names
}
