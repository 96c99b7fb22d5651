// Package confine starts commands that can write only where a permission mode
// lets them. It uses Landlock, by raw system calls, on an operating system
// thread of its own per policy: what that thread forks inherits the limits for
// good, while the rest of the program stays free.
//
// What is limited is writing to files, making, renaming, linking and removing
// them. Reading, executing and the network are not limited, nor is what Landlock
// does not know: a file's mode, owner, times and extended attributes can be
// changed by whoever owns it. There is no best effort: a kernel without Landlock, or with an interface older than
// [RequiredABI], refuses a policy that needs it.
package confine

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/caisson-dev/caisson/backends/tool"
)

// RequiredABI is the oldest Landlock interface that can hold a policy: the
// third one (Linux 6.2) is the first to stop truncation.
const RequiredABI = 3

// ApartABI is the oldest Landlock interface that limits signals (Linux 6.12).
const ApartABI = 6

// ErrNotLinux is that there is no Landlock because this is another system than
// Linux. Nothing that a user could update or switch on there would help.
var ErrNotLinux = errors.New("only Linux can confine commands")

// Policy says where the commands of one session and mode may write.
type Policy struct {
	// Mode decides what of the rest counts; empty is [tool.Standard].
	Mode tool.Mode
	// Root is the workspace, an absolute path. Writable in standard.
	Root string
	// Writable lists further absolute paths that standard lets commands write.
	// A path that leads nowhere is left out: what it names is not made, and stays
	// unwritable even if somebody makes it later.
	Writable []string
	// Temp is the private temporary directory, writable in every mode. It must
	// exist.
	Temp string
	// Apart keeps commands from signalling what was not started by the same
	// launcher, where the kernel can: from [ApartABI] on. Older ones cannot, and
	// the policy holds without it; so does one that limits nothing.
	Apart bool
	// ABI reads the version of Landlock; nil is [ABI].
	ABI func() (int, error)
}

// Confines reports whether p limits anything: unconfined does not, and neither
// does standard when "/" is writable.
func (p Policy) Confines() bool {
	switch p.Mode {
	case tool.Unconfined:
		return false
	case tool.ReadOnly:
		return true
	default:
		return filepath.Clean(p.Root) != "/" &&
			!slices.ContainsFunc(p.Writable, func(w string) bool { return filepath.Clean(w) == "/" })
	}
}

// writable are the paths that p lets commands write.
func (p Policy) writable() []string {
	if p.Mode == tool.ReadOnly {
		return []string{p.Temp}
	}
	return append([]string{p.Temp, p.Root}, p.Writable...)
}

// readABI is the version of Landlock that there is.
func (p Policy) readABI() (int, error) {
	if p.ABI != nil {
		return p.ABI()
	}
	return ABI()
}

// check is nil when p needs no Landlock or found is enough of it.
func (p Policy) check() error {
	if !p.Confines() {
		return nil
	}
	found, err := p.readABI()
	if err == nil && found >= RequiredABI {
		return nil
	}
	mode := p.Mode
	if mode == "" {
		mode = tool.Standard
	}
	var e *tool.Error
	if errors.Is(err, ErrNotLinux) {
		return tool.Errorf(tool.Unsupported, "commands in the permission mode %s do not run here: %w", mode, err).
			WithHint(`choose a profile whose commands run on Linux (docker, ssh); or let these run with all the rights that you have: "permission_mode": "unconfined" with "max_permission_mode": "unconfined" in the profile`)
	}
	if err != nil {
		e = tool.Errorf(tool.Unsupported, "permission mode %s needs Landlock ABI %d, and this system has none: %w", mode, RequiredABI, err)
	} else {
		e = tool.Errorf(tool.Unsupported, "permission mode %s needs Landlock ABI %d, and this kernel has %d", mode, RequiredABI, found)
	}
	if mode == tool.ReadOnly {
		return e.WithHint("use Linux 6.2 or newer with Landlock enabled, or an environment that is read-only by itself with the mode unconfined")
	}
	return e.WithHint(`use Linux 6.2 or newer with Landlock enabled; where the environment itself is the isolation, set "writable_paths": ["/"] or the mode unconfined in the profile`)
}
