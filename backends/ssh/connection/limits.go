package connection

import "time"

// MaxStderr is how many bytes of a command's standard error are kept: its end.
const MaxStderr = 8 << 10

// hangUpPauses are the waits before a server that hung up on whoever came is tried again:
// who is kept out by MaxStartups is most often let in by then. They are few, since a
// firewall that counts connections (ufw limit: 6 within 30 s) shuts out whoever tries more
// often, and each has a random part.
func hangUpPauses() []time.Duration {
	return []time.Duration{300 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second}
}

const (
	// handshakeTimeout bounds one hop, from the first packet to the end of
	// authentication, where the configuration has no ConnectTimeout.
	handshakeTimeout = 15 * time.Second
	// resolveTimeout bounds one `ssh -G`, which may run the commands of Match exec
	// and ask a name server.
	resolveTimeout = 15 * time.Second
	// agentTimeout is how long an agent may take to say which keys it holds, for
	// which it asks nobody; a short handshake leaves it a third of its time. One that
	// takes longer is none.
	agentTimeout = 5 * time.Second
	// masterGrace is what a master may take longer than its hops are given: it
	// is a program that has to be started, and so are those of its jumps.
	masterGrace = 5 * time.Second
	// aliveEvery is how long nothing may come in before the far end is asked
	// whether it lives, and aliveTimeout how long nothing may come in then. A
	// dead link is noticed within their sum, which is to be less than 15 s. While
	// nothing comes in it is looked aliveLooks times whether something goes out.
	aliveEvery   = 4 * time.Second
	aliveTimeout = 10 * time.Second
	aliveLooks   = 10
	// linger is how long a connection that nobody refers to is kept for the
	// next: what is done to one environment comes in bursts.
	linger = 10 * time.Second
	// firstPause and maxPause are the waits before a route that could not be
	// followed is tried again: they double from the one to the other, each with
	// a random part.
	firstPause = 250 * time.Millisecond
	maxPause   = 30 * time.Second
	// A session that has ended counts against the server's MaxSessions for a
	// little longer than its client can know. settleTimeout is how long such a
	// server is asked again, settleEvery how often; settleWindow is how long after
	// the end of a session that is worth while.
	settleTimeout = 3 * time.Second
	settleEvery   = 20 * time.Millisecond
	settleWindow  = time.Second
	// newsTimeout is how long the end of a command's output, or a failure, waits
	// for the news of whether the command or the connection has ended: they come
	// together, in any order. Only a command that closes its output and goes on is
	// delayed by it.
	newsTimeout = time.Second
	// stopGrace is how long a master may take to end when it is told to.
	stopGrace = 2 * time.Second

	// maxHops is how many hosts a route may lead over.
	maxHops = 8
	// maxExtra is how many connections of its own one reference may have beside
	// the shared one.
	maxExtra = 4
	// maxMasterLog is how many bytes of what a master says are kept, which is a lot
	// while it connects.
	maxMasterLog = 64 << 10
	// maxGreeting is how many bytes a server may say before it says what it is, as far
	// as an error repeats them.
	maxGreeting = 256
	// maxConfiguration is how many bytes `ssh -G` may print.
	maxConfiguration = 1 << 20
	// maxKnownHosts is how large a file of known hosts may be, in bytes.
	maxKnownHosts = 16 << 20
	// maxIdentity is how large a key's file may be, in bytes.
	maxIdentity = 1 << 20
	// streamBuffer is how many bytes one stream moves at a time, each way.
	streamBuffer = 64 << 10
	// maxSocketPath is the longest path that a master's socket may have. OpenSSH
	// binds it under a temporary name 17 bytes longer; the least limit is
	// macOS's 104 with the final NUL.
	maxSocketPath = 86
)
