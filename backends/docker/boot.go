package docker

import (
	"io"
	"sync"

	"github.com/caisson-dev/caisson/backends/program"
)

// bootLog keeps the last words of a container's first process, which go with
// the container when it fails at once, until somebody has reached the worker.
type bootLog struct {
	said      program.Tail
	conn      io.Closer
	ended     chan struct{}
	closeOnce sync.Once
}

// newBootLog runs follow, which ends when conn is closed.
func newBootLog(conn io.Closer, follow func(io.Writer)) *bootLog {
	l := &bootLog{said: program.Tail{Max: maxStderrBytes}, conn: conn, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		follow(&l.said)
	}()
	return l
}

// close ends the watch; what was said stays. A nil log has nothing to close.
func (l *bootLog) close() {
	if l == nil {
		return
	}
	l.closeOnce.Do(func() {
		l.conn.Close()
		<-l.ended
	})
}

// words are what was said, "" for nothing.
func (l *bootLog) words() string {
	if l == nil {
		return ""
	}
	return l.said.Line()
}
