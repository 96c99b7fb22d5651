// Package rpc is the editor's side of the service: it speaks the editor
// protocol on a pair of streams. It owns the connection's lifecycle, dispatch
// and limits, cancellation, progress and notifications, and translates between
// the protocol's types and those of the rooms session and artifacts, one
// handler file an area.
//
// It decides nothing about sessions or environments, opens no files of its own
// and knows no kind of backend.
package rpc
