// Package frame carries JSON-RPC messages over a pair of byte streams in the
// language server's framing: Content-Length headers and UTF-8 JSON. It bounds
// what it reads and what it holds for a peer that does not read.
package frame
