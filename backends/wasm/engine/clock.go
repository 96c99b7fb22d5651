package engine

import (
	"crypto/rand"
	"io"
	"math"
	mathrand "math/rand/v2"
	"time"
)

// Epoch is when the clock of a deterministic guest starts: the first second of
// 2026, in nanoseconds since 1970.
const Epoch = 1767225600 * int64(time.Second)

// tick is how far a deterministic clock goes on with each look at it, so that a
// guest that waits for time to pass gets there.
const tick = int64(time.Microsecond)

// clock is the time of one guest.
type clock interface {
	walltime() (sec int64, nsec int32)
	nanotime() int64
	nanosleep(ns int64)
}

// fixedClock starts at Epoch and goes on only by being looked at and slept on.
// Sleeping takes no time.
type fixedClock struct{ elapsed int64 }

func (c *fixedClock) advance(ns int64) int64 {
	if ns < 0 {
		ns = 0
	}
	if c.elapsed > math.MaxInt64/4-min(ns, math.MaxInt64/4) { // two human lives
		return c.elapsed
	}
	c.elapsed += ns
	return c.elapsed
}

func (c *fixedClock) walltime() (int64, int32) {
	now := Epoch + c.advance(tick)
	return now / int64(time.Second), int32(now % int64(time.Second))
}

func (c *fixedClock) nanotime() int64    { return c.advance(tick) }
func (c *fixedClock) nanosleep(ns int64) { c.advance(ns) }

// realClock is the machine's, and its own time begins when the guest does. Sleep
// ends with the guest's context.
type realClock struct{ of *guest }

func (c *realClock) walltime() (int64, int32) {
	now := time.Now()
	return now.Unix(), int32(now.Nanosecond())
}

func (c *realClock) nanotime() int64 { return int64(time.Since(c.of.began)) }

func (c *realClock) nanosleep(ns int64) {
	if ns <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.of.ctx.Done():
	}
}

// seed begins the random numbers of every deterministic guest.
var seed = [32]byte([]byte("caisson: the same for every run."))

// random is a guest's source of random numbers. It ends with its
// context: a guest may ask for 4 GiB at once.
func random(of *guest, deterministic bool) io.Reader {
	if deterministic {
		return &source{of, mathrand.NewChaCha8(seed)}
	}
	return &source{of, rand.Reader}
}

// source reads a piece at a time, as long as somebody waits for it.
type source struct {
	of   *guest
	from io.Reader
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.of.ctx.Err(); err != nil {
		return 0, err
	}
	return s.from.Read(p[:min(len(p), randomPiece)])
}
