package pace

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// interval is after how long another goroutine reads on: what comes waits twice
	// that at most behind a request that was quick until now.
	interval = 2 * time.Millisecond
	// looks is after how many intervals without a request nobody looks any more.
	looks = 5
	// yieldTurns is after how many turns the goroutine that reads gives way once. A
	// request has two, so that this is well within 10 ms.
	yieldTurns = 32
)

// Relief is who reads on when the goroutine that reads is held up. It looks at
// intervals rather than being told by each request, which would cost more than the
// request, and sleeps when none come.
type Relief struct {
	// turn is odd while the one who reads runs a request; whoever makes it even goes
	// on reading.
	turn  atomic.Uint64
	awake atomic.Bool
	wake  chan struct{}
}

// NewRelief makes one, whose Watch is to be running when requests come.
func NewRelief() *Relief { return &Relief{wake: make(chan struct{}, 1)} }

// Begin says that the one who reads begins to run a request.
func (l *Relief) Begin() (turn uint64) {
	turn = l.turn.Add(1)
	if !l.awake.Load() && l.awake.CompareAndSwap(false, true) {
		l.wake <- struct{}{}
	}
	return turn
}

// End says that it is done, and reports whether it is still the one who reads.
func (l *Relief) End(turn uint64) bool {
	if turn%yieldTurns == 1 {
		// A goroutine that has not given way for 10 ms, and blocks in a system call,
		// has its processor taken. The runtime's monitor then looks for more of that
		// every 20 µs, for some 5 ms, which makes each request take half as long again.
		runtime.Gosched()
	}
	return l.take(turn)
}

// take makes turn even, for whoever then reads.
func (l *Relief) take(turn uint64) bool { return l.turn.CompareAndSwap(turn, turn+1) }

// Watch calls read, which must not block, whenever the one who reads has run one
// request for longer than 2 to 4 ms, until done is closed.
func (l *Relief) Watch(done <-chan struct{}, read func()) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-l.wake:
		case <-done:
			return
		}
		for still := 0; still < looks; {
			seen := l.turn.Load()
			timer.Reset(interval)
			select {
			case <-timer.C:
			case <-done:
				return
			}
			switch now := l.turn.Load(); {
			case now != seen:
				still = 0
			case now%2 == 0:
				still++
			case l.take(now):
				read()
			}
			if still == looks {
				l.awake.Store(false)
				// A turn that began just now has not woken anybody.
				if l.turn.Load() != seen && l.awake.CompareAndSwap(false, true) {
					still = 0
				}
			}
		}
	}
}
