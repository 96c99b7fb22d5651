package docker

import (
	"maps"

	"github.com/caisson-dev/caisson/backends"
)

// The labels of everything that this backend makes. They say whose it is and
// hold nothing secret.
const (
	labelKind        = "dev.caisson.kind"
	labelStore       = "dev.caisson.store"
	labelEnvironment = "dev.caisson.environment"
	labelSession     = "dev.caisson.session"
	labelVersion     = "dev.caisson.version"
	labelOwnerHost   = "dev.caisson.owner.host"
	labelOwnerPID    = "dev.caisson.owner.pid"
	labelOwnerStart  = "dev.caisson.owner.start"
	// labelWorker is the SHA-256 of the worker in a volume.
	labelWorker = "dev.caisson.worker"
	// labelShare is the directory of the host that the container sees too.
	labelShare = "dev.caisson.share"
	// labelNonce tells a container or a worker's volume that this process asked
	// for from a later one of its name.
	labelNonce = "dev.caisson.nonce"
)

// checkStore stands in place of a store's name on what a check makes, which is
// in no store.
const checkStore = "check"

// The kinds of things that are made.
const (
	kindEnvironment = "environment" // a container, and the volumes that go with it
	kindCall        = "call"        // a container of one call
	kindWorker      = "worker"      // a volume that holds a worker
	kindHelper      = "helper"      // a container that is never started
)

// labels are those of something made for a binding.
func (b *Backend) labels(kind string, binding backends.Binding, more map[string]string) map[string]string {
	all := map[string]string{
		labelKind:        kind,
		labelStore:       binding.Store,
		labelEnvironment: binding.Environment,
		labelSession:     binding.Session,
		labelVersion:     b.version,
	}
	maps.Copy(all, b.owner.labels())
	maps.Copy(all, more)
	return all
}

// ours reports whether labels are those of the binding's own environment.
func ours(labels map[string]string, binding backends.Binding) bool {
	return labels[labelKind] == kindEnvironment &&
		labels[labelStore] == binding.Store && labels[labelEnvironment] == binding.Environment
}
