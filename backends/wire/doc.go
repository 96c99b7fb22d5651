// Package wire is protocol 4: the frames between the service and whatever runs
// inside an environment, and both ends of one stream of them.
//
// [Reader] and [Writer] are the codec. [Client] is the host's end: it sends
// requests, matches replies, answers callbacks, and takes events. [Server] is
// the worker's end: it admits requests, runs a [Handler], routes cancellations
// and callbacks, and sends events. The data of every request and reply has a Go
// type here, and every capability its name.
//
// The package knows one stream. Making one, making another after a loss, and
// deciding what may be asked again are the business of package remote; what a
// request means is the business of the worker. Nothing here may reach for
// either.
//
// # Frames
//
// A frame is one line of JSON, at most [MaxFrame] bytes with its newline. After
// a line with a member "raw" stand exactly that many raw bytes. They are the
// pieces of a body ([CapBulk]): a frame with "body": N announces N bytes, which
// follow in frames of the same id and direction,
//
//	{"id":"7","method":"body","raw":1048576}
//
// each with at most [MaxRaw] bytes; other frames may stand between. A sender
// that cannot go on says so with {"id":"7","method":"body","error":"..."}. It
// is never more than [BodyWindow] bytes ahead of what the receiver has taken,
// which the receiver tells with {"id":"7","method":"body_taken","body":total}:
// so a slow reader of one body holds up nothing else and needs no more memory
// than that window.
package wire
