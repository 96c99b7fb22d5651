package ssh

import "time"

// Limits and waits of this package, each with its reason.
const (
	// answerTimeout bounds one short command on the machine: a slow link and a
	// startup file that takes its time.
	answerTimeout = 30 * time.Second
	// uploadTimeout bounds the upload of the worker: 30 MiB at 1 Mbit/s.
	uploadTimeout = 5 * time.Minute
	// sftpTimeout is how long an sftp server may take nothing of an upload: as many
	// requests as may be open, 2 MiB, at 1 Mbit/s.
	sftpTimeout = 20 * time.Second
	// fillTimeout bounds the sending of the opened folder: the most that is sent,
	// at little more than 1 MB/s.
	fillTimeout = 30 * time.Minute
	// cleanupTimeout bounds what is done after a failure or a cancellation, when
	// the caller's own context is of no use any more.
	cleanupTimeout = 30 * time.Second
	// exitTimeout is how long the end of a stream is waited for to say why it
	// ended.
	exitTimeout = 2 * time.Second
	// checkTimeout bounds a check as a whole: a first upload too.
	checkTimeout = uploadTimeout + time.Minute
	// workerAge is for how long a worker of another build that nothing runs is
	// kept: services of several versions may take turns.
	workerAge = 7 * 24 * time.Hour
	// maxStdout is how many bytes a machine may print in answer to a short command, what
	// its startup files print included.
	maxStdout = 1 << 20
	// maxQuoted is how much of what a machine printed an error quotes, in bytes.
	maxQuoted = 300
	// maxPlaced is how many machines' workers are remembered.
	maxPlaced = 256
)
