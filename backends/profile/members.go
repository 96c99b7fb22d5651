package profile

import (
	"math"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// member is one row of the table: everything that is known about one member of
// a profile but its default, which [Profile.fill] gives.
type member struct {
	name     string
	backends set
	// identity says that the member makes an environment what it is: another
	// value is another environment. Values of variables never are: their hash
	// would stand in labels.
	identity bool
	kind     kind
	doc      string
}

// table lists every member in the order of the documentation. It is built when
// it is asked for, so that a worker never pays for it.
func table() []member {
	const id = true
	return []member{
		{"workspace", remote, id, text(func(p *Profile) *string { return &p.Workspace }, insidePath),
			"Where the workspace is inside the environment; for ssh the parent of one directory per environment. Default /workspace."},
		{"workspace_source", images | inSSH, id, choice(func(p *Profile, s string) { p.WorkspaceSource = s }, "empty", "copy"),
			"empty: nothing is synchronised (default). copy: the opened folder is sent up once, when the environment is made, without what ignore files leave out; at most 2 GiB."},
		{"host_workspace", inDocker | inApptainer, id, text(func(p *Profile) *string { return &p.HostWorkspace }, hostPath),
			"A host folder as the workspace; ${workspaceFolder} is the opened one."},
		{"mount_read_only", inDocker | inApptainer, id, flag(func(p *Profile) *bool { return &p.MountReadOnly }),
			"Whether host_workspace is mounted read-only."},
		{"mounts", inDocker | inApptainer, id, mountList(),
			"More host folders inside the environment: source on the host, target inside, and readonly."},
		{"shared", remote &^ inCommand, id, flag(func(p *Profile) *bool { return &p.Shared }),
			"Whether all sessions on this profile share one environment. Default false."},
		{"persistent", remote &^ inCommand, id, flag(func(p *Profile) *bool { return &p.Persistent }),
			"Whether the environment's files outlive closed sessions and stopped services. Default false."},

		{"permission_mode", all, false, mode(func(p *Profile) *tool.Mode { return &p.PermissionMode }),
			"What a call may write that does not say. Default standard."},
		{"max_permission_mode", all, id, mode(func(p *Profile) *tool.Mode { return &p.MaxPermissionMode }),
			"The most that a call may ask for. Default standard."},
		{"writable_paths", all &^ inWASM, id, list(func(p *Profile) *[]string { return &p.WritablePaths }, insidePath),
			`What standard lets commands write beside the workspace and their temporary directory; ["/"] is everything.`},
		{"network", inDocker, id, choice(func(p *Profile, s string) { p.Network = s }, "none", "enabled", "bridge=enabled", "host"),
			"none (default), enabled, for docker also host."},
		{"network", inApptainer | clouds, id, choice(func(p *Profile, s string) { p.Network = s }, "none", "enabled"),
			"none (default) or enabled."},
		{"network", inWASM, id, choice(func(p *Profile, s string) { p.Network = s }, "none"),
			"none."},
		{"allowed_hosts", images | inWASM, id, list(func(p *Profile) *[]string { return &p.AllowedHosts }, hostName),
			"The only hosts that commands may reach, through the worker's own connection."},
		{"cpus", images, id, number(func(p *Profile) *float64 { return &p.CPUs }),
			"Processors. vercel and daytona take whole ones; modal and daytona default to 2."},
		{"memory_mb", images &^ inVercel, id, integer(func(p *Profile, n int64) { p.Memory = n << 20 }, 1, math.MaxInt64>>20),
			"Memory in MiB, at least 16. modal and daytona default to 2048; daytona rounds up to GiB."},
		{"memory", images &^ inVercel, id, size(func(p *Profile) *int64 { return &p.Memory }),
			`Memory as a size such as "2g", at least 16m; instead of memory_mb.`},
		{"pids_limit", inDocker | inApptainer, id, integer(func(p *Profile, n int64) { p.PidsLimit = n }, 1, math.MaxInt32),
			"How many processes there may be. docker's default is 512."},

		{"env", all, false, variables(func(p *Profile) *map[string]string { return &p.Env }),
			"Variables with their values."},
		{"forward_env", all, false, list(func(p *Profile) *[]string { return &p.ForwardEnv }, variableName),
			"Variables taken from the host; one that is missing stops the start."},
		{"env_allowlist", all, false, list(func(p *Profile) *[]string { return &p.EnvAllowlist }, variableName),
			"Variables taken from the host when they are there."},
		{"env_allow_prefixes", all, false, list(func(p *Profile) *[]string { return &p.EnvAllowPrefixes }, variableName),
			"Prefixes of variables taken from the host when they are there."},

		{"worker", images | inSSH, false, text(func(p *Profile) *string { return &p.Worker }, insidePath),
			"Path of a worker that is in the environment already; without it this program puts itself there."},
		{"lifetime_seconds", remote, false, integer(func(p *Profile, n int64) { p.Lifetime = time.Duration(n) * time.Second }, 0, math.MaxInt32),
			"How long a worker without a connection lives, and the lifetime or auto-stop of a cloud. 0 and absent: 600."},
		{"shutdown_timeout_ms", remote, false, integer(func(p *Profile, n int64) { p.ShutdownTimeout = time.Duration(n) * time.Millisecond }, 0, math.MaxInt32),
			"Budget of a shutdown. 0 and absent: 7 s, clouds 90 s, command 60 s."},
		{"timeout", all, false, duration(func(p *Profile) *time.Duration { return &p.Timeout }),
			"How long one call may take. Default execution.timeout."},

		{"image", images, id, text(func(p *Profile) *string { return &p.Image }, imageName),
			"The image to run."},
		{"user", inDocker | inSSH, id, text(func(p *Profile) *string { return &p.User }, userName),
			"The user inside. docker: the caller on a Linux bind mount, else the image's."},
		{"container_policy", inDocker, id, choice(func(p *Profile, s string) { p.ContainerPolicy = s }, PolicyPerSession, PolicyPersistent, PolicyPerCall),
			"per_session (default); persistent is shared and persistent; per_call is a fresh container for each call that runs commands."},
		{"read_only_root", inDocker, id, flag(func(p *Profile) *bool { return &p.ReadOnlyRoot }),
			"Whether the image's files are read-only. Default false, for per_call true."},
		{"tmpfs_noexec", inDocker, id, flag(func(p *Profile) *bool { return &p.TmpfsNoexec }),
			"Whether nothing in /tmp can be executed. Default true."},
		{"tmpfs_size", inDocker, id, size(func(p *Profile) *int64 { return &p.TmpfsSize }),
			"Size of /tmp. Default 64m."},
		{"shm_size", inDocker, id, size(func(p *Profile) *int64 { return &p.ShmSize }),
			"Size of /dev/shm. Default the daemon's."},
		{"pull", inDocker, false, choice(func(p *Profile, s string) { p.Pull = s }, "missing", "always", "never"),
			"When to pull the image. Default missing."},
		{"runtime", inDocker, id, text(func(p *Profile) *string { return &p.Runtime }),
			"The OCI runtime. Default the daemon's."},
		{"docker_host", inDocker, id, text(func(p *Profile) *string { return &p.DockerHost }, dockerHost),
			"The daemon's endpoint. Default DOCKER_HOST, then the CLI's context, then the default socket."},
		{"docker_context", inDocker, id, text(func(p *Profile) *string { return &p.DockerContext }),
			"A context of the docker CLI, instead of docker_host."},
		{"platform", inDocker, id, text(func(p *Profile) *string { return &p.Platform }, platformName),
			"The image's platform, such as linux/arm64."},

		{"host", inSSH, id, text(func(p *Profile) *string { return &p.Host }, sshHost),
			"The host, which may be an alias of the user's ssh configuration."},
		{"port", inSSH, id, integer(func(p *Profile, n int64) { p.Port = int(n) }, 1, math.MaxUint16),
			"The port. Default the ssh configuration's."},
		{"identity_file", inSSH, false, text(func(p *Profile) *string { return &p.IdentityFile }, hostFile),
			"The private key. Default the ssh configuration's."},
		{"known_hosts_file", inSSH, false, text(func(p *Profile) *string { return &p.KnownHostsFile }, hostFile),
			"The file of known host keys. Default the ssh configuration's."},
		{"ssh_config", inSSH, id, text(func(p *Profile) *string { return &p.SSHConfig }, hostFile),
			"The ssh configuration. Default the user's."},

		{"shell", inLocal, false, text(func(p *Profile) *string { return &p.Shell }, hostPath),
			"The shell of commands. Default /bin/bash."},
		{"allowed_commands", inLocal, false, list(func(p *Profile) *[]string { return &p.AllowedCommands }),
			"The only commands that may run; empty allows all."},
		{"denied_commands", inLocal, false, list(func(p *Profile) *[]string { return &p.DeniedCommands }),
			"Commands that never run, checked on the parsed command line. Default rm -rf /, dd if=/dev/zero and their like."},
		{"env_mode", inLocal, false, choice(func(p *Profile, s string) { p.EnvMode = s }, "inherit", "clean", "allowlist"),
			"Which of the host's variables commands see. Default inherit."},

		{"engine", inWASM, id, choice(func(p *Profile, s string) { p.Engine = s }, "wazero"),
			"wazero."},
		{"preopens", inWASM, id, preopenList(),
			`Host folders that a guest sees, as objects of host, guest and readonly or "guest::host[:ro]"; the first is the root.`},
		{"modules", inWASM, id, list(func(p *Profile) *[]string { return &p.Modules }),
			"The modules that jobs may name, by their path here or their file's name without .wasm; sha256: digests are those of registered tools."},
		{"max_memory_pages", inWASM, id, integer(func(p *Profile, n int64) { p.MaxMemoryPages = uint32(n) }, 1, 65536),
			"Memory of one guest in pages of 64 KiB. Default 1024."},
		{"max_fuel", inWASM, id, integer(func(p *Profile, n int64) { p.MaxFuel = uint64(n) }, 1, math.MaxInt64),
			"Instructions of one call, and what the host does for it by size. Default 10⁹."},
		{"max_execution_time", inWASM, false, duration(func(p *Profile) *time.Duration { return &p.MaxExecutionTime }),
			"Time of one call, waiting and compiling aside. Default 30s."},
		{"deterministic", inWASM, id, flag(func(p *Profile) *bool { return &p.Deterministic }),
			"Whether a guest sees a clock that starts at a fixed time, seeded random numbers, and files without times of their own. Default true."},

		{"command", inCommand, id, argv(func(p *Profile) *[]string { return &p.Command }),
			"The adapter and its arguments; it is trusted and runs with the user's rights."},
		{"python", clouds, false, ignored("python has no effect: no Python is needed"),
			"Accepted with a warning and without effect: no Python is needed."},
	}
}

func mode(field func(*Profile) *tool.Mode) kind {
	return choice(func(p *Profile, s string) { *field(p) = tool.Mode(s) },
		string(tool.ReadOnly), string(tool.Standard), string(tool.Unconfined))
}
