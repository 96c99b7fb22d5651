// Package frame carries JSON-RPC messages over a pair of byte streams in the
// language server's framing: Content-Length headers and UTF-8 JSON.
//
// It is the [jsonrpc2.Stream] of both ends of the editor protocol, and there
// for what the library's own streams leave open: headers and bodies are
// bounded, a body that is no message is reported and survived, buffers shrink
// again, and a write never waits for a peer that does not read.
//
// It knows nothing of methods, and no other room's types may enter.
package frame

import (
	"errors"
	"fmt"
)

// Limits, in bytes unless they say otherwise.
const (
	// MaxHeader bounds one header block; real ones have about 30 bytes. What goes
	// beyond it is refused at its first byte, whether its line has an end or not.
	MaxHeader = 4 << 10
	// readBuffer is how much is asked of the input at once: many short messages.
	readBuffer = 32 << 10
	// MaxBody is the longest body that is read. It is the protocol's
	// maxMessageBytes: 16 MiB of any file content fit in base64 or escaped.
	MaxBody = 64 << 20
	// MaxDeclared is the longest body that is skipped. A length above it is not
	// a message that went wrong but a stream that is none of ours.
	MaxDeclared = 1 << 30
	// MaxQueued is how many messages may wait to be written, in messages. A
	// peer that lets more pile up is not coming back.
	MaxQueued = 10_000
	// MaxNotified is how many bytes of notifications may wait to be written.
	// Answers do not count: whoever admits requests bounds them.
	MaxNotified = 64 << 20
	// keepBuffer is the largest buffer that is kept for the next message, and
	// the most that short messages are put together to.
	keepBuffer = 256 << 10
	// poolBuffer is the largest buffer that is left to be used again until the
	// garbage collector takes it.
	poolBuffer = 4 << 20
	// LongResult is the longest result that [Stream.Answer] copies.
	LongResult = 64 << 10
	// firstBody is how much is allocated on the word of a header alone; more
	// comes as the body does.
	firstBody = 1 << 20
)

// The ways a stream can end, besides [io.EOF] and errors of the streams
// themselves; matched with errors.Is.
var (
	// ErrHeader is input that is not of this framing.
	ErrHeader = errors.New("not a Content-Length header")
	// ErrSlowPeer is a peer that did not read for so long that [MaxQueued] or
	// [MaxNotified] was reached.
	ErrSlowPeer = errors.New("the peer does not read what it is sent")
	// ErrClosed is the use of a stream that this end has closed.
	ErrClosed = errors.New("the stream is closed")
)

// Problem is a frame whose body is no message. The stream goes on behind it.
type Problem int

// The problems.
const (
	// NotJSON is a body that is not one JSON value in UTF-8.
	NotJSON Problem = iota + 1
	// NotMessage is JSON that is not one JSON-RPC message. Batches count: no
	// peer of this protocol sends them, and they would multiply every limit.
	NotMessage
	// TooLong is a body above [MaxBody], which was skipped.
	TooLong
	// NotText is a message with half a surrogate pair in one of its strings,
	// which JSON can write and no text can hold.
	NotText
)

func (p Problem) Error() string {
	switch p {
	case NotJSON:
		return "the message is not JSON in UTF-8"
	case TooLong:
		return fmt.Sprintf("the message is longer than %d bytes", MaxBody)
	case NotText:
		return `a string of the message holds half of a surrogate pair (such as "\ud83d"), which is no character`
	default:
		return "the message is not a JSON-RPC 2.0 request, notification or response (batches are not supported)"
	}
}
