package rpc

import (
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// progress tells the client how a request gets on.
type progress struct {
	server *server
	token  protocol.Token

	mu    sync.Mutex
	ended bool
}

// begin starts the progress of a request that carried a workDoneToken. Without
// one it does nothing, and neither do its methods.
func (r *request) begin(token protocol.Token, title string) *progress {
	p := &progress{server: r.server, token: token, ended: token == ""}
	p.send(protocol.ProgressValue{Kind: protocol.ProgressBegin, Title: title}, false)
	return p
}

// steps reports the steps of opening an environment.
func (p *progress) steps() backends.Progress {
	return func(step string) {
		p.send(protocol.ProgressValue{Kind: protocol.ProgressReport, Message: step}, false)
	}
}

// end tells the end; what is reported afterwards is dropped.
func (p *progress) end() { p.send(protocol.ProgressValue{Kind: protocol.ProgressEnd}, true) }

func (p *progress) send(v protocol.ProgressValue, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = last
	p.server.notify(protocol.MethodProgress, protocol.ProgressParams{Token: p.token, Value: v})
}
