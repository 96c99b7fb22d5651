package engine

import (
	"errors"

	"github.com/tetratelabs/wazero/experimental"
)

// errMemory is a guest whose memory begins larger than it may be, or cannot be had.
var errMemory = errors.New("its memory begins larger than it may be")

// memory is the memory of one guest and holds its limit. The engine's own limit
// belongs to the compiled module and would refuse in silence: here a refusal is
// known, so that a guest that gives up afterwards is known to have been out of
// memory. It is outside the collector's heap and given back at once.
type memory struct {
	limit   uint64 // bytes
	region  []byte // all that it may ever be, of which the beginning is in use
	used    bool
	refused bool
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// Allocate sets address space aside; memory comes with its use.
func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	region, err := reserve(min(most, m.limit))
	if err != nil {
		m.refused = true
		panic(errMemory)
	}
	m.region = region
	return m
}

// Reallocate returns size bytes of it, or nil where that is more than it may be.
func (m *memory) Reallocate(size uint64) []byte {
	grown := m.used
	m.used = true
	if size <= uint64(len(m.region)) {
		return m.region[:size]
	}
	m.refused = true
	if !grown {
		panic(errMemory) // the engine knows no module without its first page
	}
	return nil
}

// Free gives it back. Nothing of the guest may run any more.
func (m *memory) Free() {
	release(m.region)
	m.region = nil
}
