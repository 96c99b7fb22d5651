package profile

import "slices"

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

// CanonicalKind resolves a backend's aliases. It reports false for a name that
// is none.
func CanonicalKind(name string) (string, bool) {
	switch name {
	case "singularity":
		return Apptainer, true
	case "vercel_sandbox":
		return Vercel, true
	}
	return name, slices.Contains(Kinds(), name)
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

// Remote reports whether the environment is reached through a worker of its
// own somewhere else: every backend but local and wasm.
func (p Profile) Remote() bool { return p.in(remote) }
