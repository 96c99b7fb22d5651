// Package protocol holds the data of the editor protocol, version 1: what an
// editor and the service say to each other, as Go types, the table of methods
// and the table of error codes. It is the source of truth that JSON Schema and
// TypeScript types are generated from.
//
// Nothing else may enter: no input or output, no conversion from other rooms'
// types, no behaviour beyond how a value is written in JSON.
//
// Members are camelCase. A member that may be missing carries omitzero or
// omitempty; every other one is required. Unknown members are ignored. Unless a
// member says otherwise, times are RFC 3339 in UTC, sizes and offsets bytes,
// and a member whose name ends in Ms is milliseconds.
package protocol

// Version is the protocol's version, which the service says in its answer to
// initialize.
const Version = 1

// Limits of the protocol, in bytes.
const (
	// MaxMessageBytes is the longest message body; a longer one is dropped
	// unread and answered with an error. It is announced as a capability.
	MaxMessageBytes = 64 << 20
	// MaxArtifactBytes is the largest artifact, announced as a capability.
	MaxArtifactBytes = 256 << 20
	// MaxFileBytes is the most that one fs/readFile returns or one
	// fs/writeFile takes, before base64.
	MaxFileBytes = 16 << 20
	// MaxSubscriptionBytes is the most output of one subscription that waits
	// in the service for a client that reads slowly.
	MaxSubscriptionBytes = 1 << 20
)

// MaxPendingNotifications is how many notifications of changes may wait for a
// client; they are never dropped, so a client that lets more pile up is
// disconnected.
const MaxPendingNotifications = 10_000

// MaxWaitMs is the longest that one process/wait or process/read waits.
const MaxWaitMs = 60_000
