// Package pace is for a goroutine that reads a stream of requests and runs the quick
// ones itself, since to hand one to another goroutine wakes a thread, which may take
// longer than the request: [Memory] knows which were quick the last time, and [Relief]
// has another goroutine read on in its place when one is not so after all.
//
// Both lie on the way of every request, at either end. What a request is does not enter.
package pace

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Memory remembers which kinds of requests were over soon the last time. Its methods
// may be called concurrently.
type Memory struct {
	limit time.Duration
	seed  maphash.Seed
	kinds [256]Kind // by the hash of what makes the kind
}

// NewMemory makes one that calls soon what takes less than limit. It knows of none yet
// that did.
func NewMemory(limit time.Duration) *Memory {
	m := &Memory{limit: limit, seed: maphash.MakeSeed()}
	for i := range m.kinds {
		m.kinds[i].memory = m
	}
	return m
}

// Kind is what is remembered of one kind of requests.
type Kind struct {
	memory *Memory
	soon   atomic.Bool
}

// Of is the kind that these make together. Two that share a place share its fate,
// which does no harm.
func (m *Memory) Of(parts ...string) *Kind {
	var h maphash.Hash
	h.SetSeed(m.seed)
	for _, part := range parts {
		h.WriteString(part)
	}
	return &m.kinds[h.Sum64()%uint64(len(m.kinds))]
}

// Soon reports whether the last request was over soon.
func (k *Kind) Soon() bool { return k.soon.Load() }

// Took notes how long a request took.
func (k *Kind) Took(d time.Duration) {
	if soon := d < k.memory.limit; k.soon.Load() != soon {
		k.soon.Store(soon)
	}
}
