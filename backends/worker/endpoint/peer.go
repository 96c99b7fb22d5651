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

// ErrForeign is within the errors of [Peers.Check] for a peer that is no command as far as
// can be seen, and may not connect either: another user's, or one that /proc hides. An
// error with neither of the two may pass: there is nothing yet against the peer.
var ErrForeign = errors.New("it is not this user's to see")

// judged is an error that is one of these too, and has words of its own.
type judged struct {
	error
	as error
}

func (e judged) Is(target error) bool { return target == e.as }
func (e judged) Unwrap() error        { return e.error }
