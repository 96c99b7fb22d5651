// Package eventlog writes what happens in a service's sessions to a file, one JSON
// object a line: calls with their outcome, refusals among them, sessions, processes
// and artifacts. It is a [session.Sink] that never makes anybody wait.
//
// What a call was given does not stand there: no arguments, no command lines, no
// variables, no output. Texts of errors do, without what those of calls quote, or tell
// of a program's output, and with what looks like a secret, and what is one by the
// configuration, taken out.
package eventlog

import "time"

const (
	// DefaultMaxBytes is how large the file becomes before it is moved aside, in
	// bytes. With the one before it, that is twice as much.
	DefaultMaxBytes = 64 << 20
	// MinMaxBytes is the least that it may be told to become: some thousand lines.
	MinMaxBytes = 1 << 20

	// maxQueue is how many events wait for the disk, which is minutes of calls, and
	// some megabytes. What comes beyond is counted.
	maxQueue = 8192
	// maxText bounds every text of an event, in bytes.
	maxText = 2 << 10
	// closeWait is how long, at the end, the queue may still be written.
	closeWait = 2 * time.Second
	// secretsAge is how old the list of secrets may be that texts are searched for.
	secretsAge = 5 * time.Second
	// minSecret is the shortest value that is taken out, in bytes: shorter ones are
	// words.
	minSecret = 6
)
