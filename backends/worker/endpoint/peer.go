package endpoint

// The names that processes of ours go by, as ps shows them, and by which
// [Peers.Check] knows them; a command may take such a name, and is only refused
// the sooner. At most 15 bytes, the kernel's limit.
const (
	WorkerName = "caisson-worker"
	InitName   = "caisson-init"
)
