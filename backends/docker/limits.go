package docker

import "time"

// Limits and waits of this package, each with its reason.
const (
	// answerTimeout bounds a connection to a daemon and its first answer
	// together: less than the 3 s within which a person must learn that it is not
	// there. dialTimeout bounds each connection alone.
	answerTimeout = 2500 * time.Millisecond
	dialTimeout   = 1500 * time.Millisecond
	// describeTimeout is how long a daemon that answers may take to say what it is,
	// for which it starts programs: on a busy machine seconds.
	describeTimeout = 15 * time.Second
	// sshTimeout is both at once for ssh:// endpoints, whose key exchange and
	// log-in take their time on a slow link.
	sshTimeout = 15 * time.Second
	// idleConnection is how long an unused connection to a daemon is kept; over
	// ssh each is a process.
	idleConnection = 30 * time.Second
	// infoAge is how long a daemon is believed to be what it said it was.
	infoAge = time.Minute
	// createTimeout bounds the creation of a container. It is not cut short by
	// the caller: a creation that was cancelled half-way would leave a container
	// that nobody knows of.
	createTimeout = 60 * time.Second
	// cleanupTimeout bounds what is done after a failure or a cancellation, when
	// the caller's own context is of no use any more.
	cleanupTimeout = 30 * time.Second
	// removalTimeout bounds the wait for a removal that is already under way.
	removalTimeout = 20 * time.Second
	// fillTimeout is how long another service may take to put the same worker
	// on a daemon before it counts as dead.
	fillTimeout = 2 * time.Minute
	// foreignAge is how old something of another store must be before its maker is
	// believed to be dead: more than anything takes that is done by what would be
	// removed then, and than clocks of machines differ.
	foreignAge = 10 * time.Minute
	// pollInterval is how often the daemon is asked for what it sends no answer
	// to by itself.
	pollInterval = 50 * time.Millisecond
	// progressInterval keeps a pull from reporting more than a person reads.
	progressInterval = 500 * time.Millisecond
	// checkTimeout bounds the container that Check starts.
	checkTimeout = 30 * time.Second

	// maxPasswdBytes bounds the user list that is read from an image: it is the
	// image's own and so not to be trusted.
	maxPasswdBytes = 1 << 20
	// maxUsers is how many users of images are remembered: more images than
	// anybody has profiles.
	maxUsers = 256
	// maxConfigBytes bounds a file of the docker CLI's configuration.
	maxConfigBytes = 4 << 20
	// maxStderrBytes is what is kept of what a failed exec or ssh says; the end
	// of it is what tells.
	maxStderrBytes = 4 << 10
	// logBytes bounds what a container's own log takes on the daemon.
	logBytes = "1m"

	// maxCallContainers is how many calls of an environment have a container at
	// once: each takes an engine a good part of a second to start, and has all of
	// the profile's limits for itself. The others wait.
	maxCallContainers = 16
	// callConnectBudget is how long the worker of a call, which has been started
	// by then, may take to answer.
	callConnectBudget = 20 * time.Second
	// selfRemoval is how long a call's container, whose input has ended, may take
	// to remove itself before it is killed.
	selfRemoval = time.Second
)
