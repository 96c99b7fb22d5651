// Package adapterkit is for authors of command adapters: programs that a profile
// with backend "command" starts, and that serve one execution environment over
// their standard input and output in wire protocol 4.
//
// An adapter is a [Backend] and a call of [Run], which owns everything that the
// protocol asks of every adapter alike: frames, the session's token, concurrent
// requests and their cancellation, the routing of callbacks, and the order of the
// shutdown. There are two ways to a Backend, and a third of one's own:
//
//   - [New] makes one of [Handlers], a function for each thing that an adapter
//     can do. What has no function is answered as an unknown method.
//   - [Delegate] forwards everything to another worker or adapter, which the
//     author names. A type that embeds a [Delegated] and overrides Handle sees, and
//     may refuse, every request on its way.
//   - Any other implementation of Backend gets requests as they came.
//
// The kit creates no directories, hands no variable of the adapter to commands,
// and answers nothing itself that a Backend does not: there is no local fallback.
//
// Standard output belongs to the protocol. What an adapter has to say goes to
// standard error, whose end the service quotes when the adapter fails.
//
// The directory examples holds three adapters in full: files, with files and
// processes of this machine; audit, which writes a log and delegates; overlay,
// whose files are in memory only.
package adapterkit
