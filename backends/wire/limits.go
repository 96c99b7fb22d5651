package wire

import "time"

// Version is the protocol version that both ends must speak.
const Version = 4

// Limits of the protocol. Both ends keep to them whatever the other one sends.
const (
	// MaxFrame is the longest frame in bytes, its newline included. A longer
	// one is never sent, and one that comes in ends the connection.
	MaxFrame = 16 << 20
	// MaxRaw is the most raw bytes that follow one frame: small enough that
	// a frame behind it waits for a millisecond, large enough that the headers
	// cost nothing.
	MaxRaw = 1 << 20
	// MaxBody is the longest body that is collected in memory, in bytes: the
	// arguments of a call that writes a file of 16 MiB fit, unless nearly every
	// byte in it has to be escaped. Streams may be longer.
	MaxBody = 64 << 20
	// BodyWindow is how far a sender of a body may be ahead of its receiver,
	// in bytes: what one stream whose reader is slow holds in memory.
	BodyWindow = 4 << 20
	// MaxBanner is how many bytes a peer may print before its first frame: a login
	// banner, a message of the day.
	MaxBanner = 64 << 10
	// MaxNoise is how many bytes a peer may print before its mark: all that an
	// account's startup files print. It is dropped as it comes and held nowhere.
	MaxNoise = 1 << 20
	// MaxRefused is a limit for [Refuse], in bytes, that no initialize of ours exceeds,
	// whose variables are at most 1 MiB before they are JSON.
	MaxRefused = 2 << 20
	// MinToken is the shortest token that protects a connection, in characters.
	MinToken = 32
	// BulkArguments is the length from which the arguments of a call travel as
	// a body, in bytes, where both ends can.
	BulkArguments = 256 << 10
	// ExportChunk is the most content bytes in one export/read reply.
	ExportChunk = 256 << 10
)

// Limits of the two ends.
const (
	// DefaultCancelGrace is how long a cancelled call waits for its terminal
	// reply before its outcome is unknown and the connection closed.
	DefaultCancelGrace = 35 * time.Second
	// restTime is how long nobody reads after a call whose caller read its own reply:
	// what an event may come late by.
	restTime = time.Millisecond
	// lastWords is how long the end of what a peer sends is waited for that does
	// not take what is sent to it any more.
	lastWords = time.Second
	// DefaultMaxRequests is how many requests a server runs at once. Waits for
	// process output count, and what stops a process must get through beside them:
	// it is above all that the service lets one client ask for at once, which is 64
	// calls, 1024 waits and 256 subscriptions. Each costs a goroutine.
	DefaultMaxRequests = 2048
	// maxIdlers is how many goroutines stay when they have run their requests.
	maxIdlers = 4
	// maxInline is the longest data of a request, in bytes, that the goroutine that
	// reads runs itself.
	maxInline = 8 << 10
	// quickRequest is how soon a request must have been over for the next one of its
	// kind to be run by the goroutine that reads: to hand it to another one takes
	// about that long where processors are busy or asleep.
	quickRequest = 200 * time.Microsecond
	// DefaultMaxPending is how many bytes of request data and bodies a server
	// holds at once.
	DefaultMaxPending = 2 * MaxBody
	// maxCallbacks is how many callbacks a client answers at once, maxWaiting and
	// maxCallbackBytes how many may wait for that and how long their data may be
	// together. A program can ask for more at once than anybody should run at
	// once; a peer that goes beyond the last two is not one of ours.
	maxCallbacks     = 64
	maxWaiting       = 1024
	maxCallbackBytes = 64 << 20
	// maxEvents is how many events wait for a host that does not read. It can
	// learn everything again from process/list, so beyond that the connection is
	// ended rather than an event dropped.
	maxEvents = 4096
	// maxDepth is how deep JSON may nest.
	maxDepth = 1000
	// quotedHead is how many bytes of a line that is no frame an error quotes.
	quotedHead = 160
)
