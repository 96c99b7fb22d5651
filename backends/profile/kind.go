package profile

import (
	"slices"

	"github.com/caisson-dev/caisson/backends/tool"
)

// set is a set of backends, one bit each in the order of [Kinds].
type set uint16

const (
	inLocal set = 1 << iota
	inDocker
	inSSH
	inApptainer
	inModal
	inDaytona
	inVercel
	inCommand
	inWASM

	clouds = inModal | inDaytona | inVercel
	images = inDocker | inApptainer | clouds
	remote = images | inSSH | inCommand
	all    = remote | inLocal | inWASM
)

// Kinds are the backends' names, those still to come included.
func Kinds() []string {
	return []string{Local, Docker, SSH, Apptainer, Modal, Daytona, Vercel, Command, WASM}
}

// alias is a second name of a backend.
func alias(kind string) (string, bool) {
	switch kind {
	case Apptainer:
		return "singularity", true
	case Vercel:
		return "vercel_sandbox", true
	}
	return "", false
}

// spellings are the names under which a profile may say one of the kinds.
func spellings(kinds ...string) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k)
		if a, ok := alias(k); ok {
			all = append(all, a)
		}
	}
	return all
}

// CanonicalKind resolves a backend's aliases. It reports false for a name that
// is none.
func CanonicalKind(name string) (string, bool) {
	for _, k := range Kinds() {
		if slices.Contains(spellings(k), name) {
			return k, true
		}
	}
	return name, false
}

func setOf(kind string) set { return 1 << slices.Index(Kinds(), kind) }

// names lists the members of s for a message.
func (s set) names() []string {
	var names []string
	for _, k := range Kinds() {
		if s&setOf(k) != 0 {
			names = append(names, k)
		}
	}
	return names
}

// in reports whether the profile's backend is in s.
func (p *Profile) in(s set) bool { return setOf(p.Backend)&s != 0 }

// Confined reports whether something limits what commands write in the profile's own
// mode: not in unconfined, nor in standard where everything is writable.
func (p *Profile) Confined() bool {
	switch p.PermissionMode {
	case tool.Unconfined:
		return false
	case tool.ReadOnly:
		return true
	default:
		return !slices.Contains(p.WritablePaths, "/")
	}
}
