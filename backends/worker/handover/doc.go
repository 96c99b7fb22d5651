// Package handover takes a process out of the way of every call: attach, which an
// engine or a machine starts to reach a worker, does not relay between its standard
// streams and the worker's socket, but gives the worker the streams, and waits.
//
// Both ends live in programs of different ages, so that everything begins as a relay:
//
//  1. Attach reads what comes first and sends it on the socket, with its descriptors 0
//     and 1 beside it (SCM_RIGHTS). It goes on relaying its input until the worker has
//     said something. A worker that does not know of this loses the descriptors
//     unseen, and what it says is a frame: attach relays to the end.
//  2. A worker that wants the descriptors says so with one byte that begins no frame,
//     before anything else, and writes to descriptor 1 from then on.
//  3. Attach ends its half of the socket. Up to there the worker reads the socket, and
//     descriptor 0 behind it, so that nothing is lost or passes something else, wherever
//     the pieces end.
//
// The socket stays open for its end only: the worker learns from it that attach has
// ended, and attach that the worker has. Only pipes and stream sockets are handed over,
// since a file or a terminal has no end that could be waited for, and only on Linux,
// where a pipe can be opened anew.
package handover

import "errors"

// acknowledgement is the byte that a worker takes descriptors with. A frame begins
// with a brace.
const acknowledgement = 0

// pieceSize is the most that is relayed at once before the worker has answered, in
// bytes.
const pieceSize = 4 << 10

// ErrLingers is what an attach fails with whose input ended long ago.
var ErrLingers = errors.New("the worker did not end the connection")
