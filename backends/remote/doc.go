// Package remote is an environment at the far end of any byte stream that
// speaks protocol 4. It owns what all such environments have in common: the
// handshake, reconnecting, timeouts and limits, processes, files, exports,
// events, and the move to a shared socket. How an environment is made and
// reached is a [Host], one per backend.
//
// After the first command everything inside an environment is untrusted:
// nothing that comes from it is followed, allocated or waited for without a
// bound. No request is ever sent twice.
package remote
