// Package profile holds a profile: the named description of an execution
// environment that the user writes. It knows every member of every backend,
// their defaults and rules, and the identity that a profile gives an
// environment. It reads no files and opens nothing.
package profile

import (
	"encoding/json"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// The backends' names.
const (
	Local     = "local"
	Docker    = "docker"
	SSH       = "ssh"
	Apptainer = "apptainer"
	Modal     = "modal"
	Daytona   = "daytona"
	Vercel    = "vercel"
	Command   = "command"
	WASM      = "wasm"
)

// Profile is a validated profile with its defaults filled in. Members that its
// backend does not know are zero. It is saved as JSON in a session's binding.
type Profile struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`

	// Written holds the members that make an environment what it is, as the
	// user wrote them, in canonical JSON, constraints applied. The identity is
	// made of it, so that a default that changes never changes an identity.
	Written map[string]json.RawMessage `json:"written,omitempty"`

	// Warnings say what was accepted and has no effect. They are not saved.
	Warnings []string `json:"-"`

	// Where the workspace is and what is in it.
	Workspace       string  `json:"workspace,omitempty"`
	WorkspaceSource string  `json:"workspace_source,omitempty"` // empty, copy
	HostWorkspace   string  `json:"host_workspace,omitempty"`
	MountReadOnly   bool    `json:"mount_read_only,omitempty"`
	Mounts          []Mount `json:"mounts,omitempty"`

	// How long it lives and who shares it.
	Shared          bool          `json:"shared,omitempty"`
	Persistent      bool          `json:"persistent,omitempty"`
	Lifetime        time.Duration `json:"lifetime,omitempty"`         // idle limit of a worker; never 0 after defaults
	ShutdownTimeout time.Duration `json:"shutdown_timeout,omitempty"` // never 0 after defaults
	Timeout         time.Duration `json:"timeout,omitempty"`          // of one call; never 0 after defaults
	MaxOutputBytes  int64         `json:"max_output_bytes,omitempty"` // of one command; from execution.max_output_bytes

	// What commands may do.
	PermissionMode    tool.Mode `json:"permission_mode,omitempty"`
	MaxPermissionMode tool.Mode `json:"max_permission_mode,omitempty"`
	WritablePaths     []string  `json:"writable_paths,omitempty"`
	Network           string    `json:"network,omitempty"` // none, enabled, host
	AllowedHosts      []string  `json:"allowed_hosts,omitempty"`
	CPUs              float64   `json:"cpus,omitempty"`
	Memory            int64     `json:"memory,omitempty"` // bytes
	PidsLimit         int64     `json:"pids_limit,omitempty"`

	// Which variables they see. Values of Env are literal.
	Env              map[string]string `json:"env,omitempty"`
	ForwardEnv       []string          `json:"forward_env,omitempty"`
	EnvAllowlist     []string          `json:"env_allowlist,omitempty"`
	EnvAllowPrefixes []string          `json:"env_allow_prefixes,omitempty"`

	// Worker is the path of a worker that is in the environment already.
	Worker string `json:"worker,omitempty"`

	// Images: docker, apptainer, clouds.
	Image string `json:"image,omitempty"`

	// docker
	User            string `json:"user,omitempty"` // ssh too
	ContainerPolicy string `json:"container_policy,omitempty"`
	ReadOnlyRoot    bool   `json:"read_only_root,omitempty"`
	TmpfsNoexec     bool   `json:"tmpfs_noexec,omitempty"`
	TmpfsSize       int64  `json:"tmpfs_size,omitempty"` // bytes
	ShmSize         int64  `json:"shm_size,omitempty"`   // bytes
	Pull            string `json:"pull,omitempty"`       // missing, always, never
	Runtime         string `json:"runtime,omitempty"`
	DockerHost      string `json:"docker_host,omitempty"`
	DockerContext   string `json:"docker_context,omitempty"`
	Platform        string `json:"platform,omitempty"`

	// ssh
	Host           string `json:"host,omitempty"`
	Port           int    `json:"port,omitempty"`
	IdentityFile   string `json:"identity_file,omitempty"`
	KnownHostsFile string `json:"known_hosts_file,omitempty"`
	SSHConfig      string `json:"ssh_config,omitempty"`

	// local
	Shell           string   `json:"shell,omitempty"`
	AllowedCommands []string `json:"allowed_commands,omitempty"`
	DeniedCommands  []string `json:"denied_commands,omitempty"`
	EnvMode         string   `json:"env_mode,omitempty"` // inherit, clean, allowlist

	// wasm
	Engine           string        `json:"engine,omitempty"`
	Preopens         []Preopen     `json:"preopens,omitempty"`
	Modules          []string      `json:"modules,omitempty"`
	MaxMemoryPages   uint32        `json:"max_memory_pages,omitempty"`
	MaxFuel          uint64        `json:"max_fuel,omitempty"`
	MaxExecutionTime time.Duration `json:"max_execution_time,omitempty"`
	Deterministic    bool          `json:"deterministic,omitempty"`

	// command
	Command []string `json:"command,omitempty"`
}

// The values of ContainerPolicy.
const (
	PolicyPerSession = "per_session"
	PolicyPersistent = "persistent"
	PolicyPerCall    = "per_call"
)

// Mount is a host folder inside the environment.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readonly,omitempty"`
}

// Preopen is a host folder that a WebAssembly guest sees.
type Preopen struct {
	Host     string `json:"host"`
	Guest    string `json:"guest"`
	ReadOnly bool   `json:"readonly,omitempty"`
}
