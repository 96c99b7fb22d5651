package endpoint

import "errors"

// The names that processes of ours go by, as ps shows them, and by which
// [Peers.Check] knows them; a command may take such a name, and is only refused
// the sooner. At most 15 bytes, the kernel's limit.
const (
	WorkerName = "caisson-worker"
	InitName   = "caisson-init"
)

// ErrCommand is within the errors of [Peers.Check] for a peer that a command may have
// started.
var ErrCommand = errors.New("it may be a command's")
