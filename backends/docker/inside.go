package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
)

// Where things lie in a container, below a directory that no image has.
const (
	workerDir  = "/.caisson/bin"
	workerPath = workerDir + "/" + workerName
	workerName = "caisson"
	stateDir   = "/.caisson/state"
	shareDir   = "/.caisson/share"
	// socketDir is made by init, for its user only.
	socketDir   = stateDir + "/run"
	controlPath = socketDir + "/init.sock"
)

// programOf is the worker's path in the container.
func programOf(p profile.Profile) string {
	if p.Worker != "" {
		return p.Worker
	}
	return workerPath
}

// initArgs are the arguments of the container's first process.
func initArgs(p profile.Profile) []string {
	args := []string{"init", "--control=" + controlPath}
	if p.Persistent {
		args = append(args, "--persistent")
	}
	return append(args, remote.LimitFlags(p)...)
}

// attachArgs are the command line of the exec that reaches, and starts when
// none runs, the session's worker. The mode and the ceiling are fixed there, by
// the host, before a frame can ask for more. Nothing secret is in it.
func attachArgs(b backends.Binding, mark string, share bool) []string {
	p := b.Profile
	sum := sha256.Sum256([]byte(b.Session))
	args := []string{
		programOf(p), "attach",
		"--mark=" + mark,
		"--control=" + controlPath,
		"--listen=" + path.Join(socketDir, "w-"+hex.EncodeToString(sum[:8])+".sock"),
		"--state=" + stateDir,
		"--session=" + b.Session,
	}
	args = append(args, foreground(p)...)
	if share {
		args = append(args, "--share-dir="+shareDir)
	}
	return append(args, remote.WorkerFlags(p)...)
}

// foreground has nothing outlive its call where each has a container.
func foreground(p profile.Profile) []string {
	if p.ContainerPolicy == profile.PolicyPerCall {
		return []string{"--foreground"}
	}
	return nil
}

// callArgs are the arguments of the only process of a call's container: a worker
// on its standard streams.
func callArgs(b backends.Binding) []string {
	args := []string{"worker", "--contained", "--state=" + path.Join(stateDir, "call"), "--session=" + b.Session}
	return slices.Concat(args, foreground(b.Profile), remote.PermissionFlags(b.Profile))
}
