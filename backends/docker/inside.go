package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
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
	return append(args, limitArgs(p)...)
}

// limitArgs are the limits that init and the worker both know.
func limitArgs(p profile.Profile) []string {
	var args []string
	if p.Lifetime > 0 {
		seconds := (p.Lifetime + time.Second - 1) / time.Second
		args = append(args, "--lifetime="+strconv.FormatInt(int64(seconds), 10))
	}
	if p.ShutdownTimeout > 0 {
		args = append(args, "--shutdown-timeout-ms="+strconv.FormatInt(max(1, p.ShutdownTimeout.Milliseconds()), 10))
	}
	return args
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
	args = append(args, permissionArgs(p)...)
	if p.Shared {
		args = append(args, "--shared")
	}
	if share {
		args = append(args, "--share-dir="+shareDir)
	}
	return append(args, limitArgs(p)...)
}

// permissionArgs are what commands may do.
func permissionArgs(p profile.Profile) []string {
	var args []string
	if p.PermissionMode != "" {
		args = append(args, "--permission-mode="+string(p.PermissionMode))
	}
	if p.MaxPermissionMode != "" {
		args = append(args, "--max-permission-mode="+string(p.MaxPermissionMode))
	}
	for _, writable := range p.WritablePaths {
		args = append(args, "--writable-path="+writable)
	}
	if p.MaxOutputBytes > 0 {
		args = append(args, "--max-output-bytes="+strconv.FormatInt(p.MaxOutputBytes, 10))
	}
	if p.ContainerPolicy == profile.PolicyPerCall {
		args = append(args, "--foreground")
	}
	return args
}

// callArgs are the arguments of the only process of a call's container: a worker
// on its standard streams.
func callArgs(b backends.Binding) []string {
	p := b.Profile
	return append([]string{"worker", "--contained", "--state=" + path.Join(stateDir, "call"), "--session=" + b.Session}, permissionArgs(p)...)
}
