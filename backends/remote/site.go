package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/wire"
)

// What backends say to the far end's subcommand "site", which looks after the
// directories of environments on machines that are not theirs alone.
type (
	// SiteRequest is what a site is asked for.
	SiteRequest = wire.SiteRequest
	// SiteRecord says whose a directory is.
	SiteRecord = wire.SiteRecord
	// SiteReply is what a site answers.
	SiteReply = wire.SiteReply
	// SiteFound is one environment that a site found.
	SiteFound = wire.SiteFound
)

// Actions of a site.
const (
	SiteCreate  = wire.SiteCreate
	SiteFill    = wire.SiteFill
	SiteFind    = wire.SiteFind
	SiteRemove  = wire.SiteRemove
	SiteList    = wire.SiteList
	SiteProve   = wire.SiteProve
	SiteInstall = wire.SiteInstall
	SiteSweep   = wire.SiteSweep
)

// ErrNoMark is output without the mark: what ran was not the worker's program,
// or something ended it before.
var ErrNoMark = errors.New("the worker's program did not say that it is there")

// AfterMark is what was printed after the line with the mark. What precedes it,
// which banners and startup files write, is dropped. Without it the error is
// [ErrNoMark].
func AfterMark(output []byte, mark string) ([]byte, error) {
	_, after, found := bytes.Cut(output, []byte(mark+"\n"))
	if !found {
		return nil, ErrNoMark
	}
	return after, nil
}

// ReadSiteReply reads what the subcommand has printed after its mark. A reply that
// is an error is returned as one; what is none is [ErrNoMark].
func ReadSiteReply(output []byte) (SiteReply, error) {
	var reply SiteReply
	line, _, _ := bytes.Cut(output, []byte("\n"))
	if err := json.Unmarshal(line, &reply); err != nil {
		return reply, fmt.Errorf("%w: %w", ErrNoMark, err)
	}
	return reply, reply.Err()
}

// SiteDirectory is the directory of an environment on a machine that is not its
// own, and SiteWorkspace the session's workspace in it.
func SiteDirectory(b backends.Binding) string { return path.Join(b.Profile.Workspace, b.Environment) }

// SiteWorkspace is the workspace in an environment's directory.
func SiteWorkspace(b backends.Binding) string {
	return path.Join(SiteDirectory(b), wire.SiteWorkspace)
}

// WorkerFlags are the flags, for the far end's subcommands attach and worker, that
// a profile decides: [PermissionFlags], [LimitFlags] and whether sessions share the
// environment. Nothing in them is secret.
func WorkerFlags(p profile.Profile) []string {
	args := PermissionFlags(p)
	if p.Shared {
		args = append(args, "--shared")
	}
	return append(args, LimitFlags(p)...)
}

// PermissionFlags are what commands may do, and how much of what they print is kept.
func PermissionFlags(p profile.Profile) []string {
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
	return args
}

// LimitFlags are how long a worker lives without a connection, and its end may take. The
// subcommand init has them too.
func LimitFlags(p profile.Profile) []string {
	var args []string
	if p.Lifetime > 0 {
		// Whole seconds, rounded up: a shorter limit must not become "default".
		seconds := (p.Lifetime + time.Second - 1) / time.Second
		args = append(args, "--lifetime="+strconv.FormatInt(int64(seconds), 10))
	}
	if p.ShutdownTimeout > 0 {
		args = append(args, "--shutdown-timeout-ms="+strconv.FormatInt(max(1, p.ShutdownTimeout.Milliseconds()), 10))
	}
	return args
}
