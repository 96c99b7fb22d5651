package docker

import (
	"time"
)

// The types below are what this package asks of an engine and what it learns
// from one, in words of its own: only the files engine*.go know the library's.

// containerSpec describes a container to be made.
type containerSpec struct {
	Name       string
	Image      string
	Platform   platform // zero: the daemon's choice
	User       string   // "": the image's
	Entrypoint []string
	Args       []string
	Labels     map[string]string

	Network      string // none, bridge, host
	ReadOnlyRoot bool
	Tmpfs        map[string]string // target to mount options
	Mounts       []mountSpec
	VolumesFrom  []string // containers whose mounts it has too

	NanoCPUs int64
	Memory   int64 // bytes, swap included
	Pids     int64
	ShmSize  int64 // bytes
	Runtime  string

	AutoRemove  bool
	StopTimeout time.Duration
	// Interactive keeps the first process's input open for one who joins it, and
	// ends it when they go. NoLog keeps nothing of what it says.
	Interactive, NoLog bool
}

// mountSpec is one mount. A volume without a source is anonymous: it goes with
// the container.
type mountSpec struct {
	Kind     mountKind
	Source   string
	Target   string
	ReadOnly bool
	// NoCopy keeps a new volume from being filled with what the image has there.
	NoCopy bool
	Labels map[string]string
}

// mountKind is what a mount comes from.
type mountKind string

// The kinds of mounts.
const (
	bindMount   mountKind = "bind"
	volumeMount mountKind = "volume"
)

// platform is an operating system and a CPU as images name them.
type platform struct{ OS, Arch, Variant string }

// String is the platform as users write it.
func (p platform) String() string {
	s := p.OS + "/" + p.Arch
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// daemonInfo is what a daemon says about itself.
type daemonInfo struct {
	ID       string
	Version  string
	API      string // negotiated
	Platform platform
	// System is the operating system's name for people.
	System string
	// Limits are those that it can hold.
	Limits struct{ Memory, CPU, Pids bool }
	// Rootless: root inside is the daemon's own user outside.
	Rootless bool
}

// imageInfo is what matters of an image.
type imageInfo struct {
	ID       string
	Platform platform
	User     string // as the image says, "" for root
}

// containerInfo is what matters of a container.
type containerInfo struct {
	ID, Name  string
	Image     string            // its id
	Volumes   map[string]string // names by target; of one container only, not of a list
	Labels    map[string]string
	CreatedAt time.Time
	Running   bool
	Paused    bool
	Removing  bool
}

// volumeInfo is what matters of a volume.
type volumeInfo struct {
	Name   string
	Labels map[string]string
	// CreatedAt is a date in whole seconds.
	CreatedAt  string
	Mountpoint string
}
