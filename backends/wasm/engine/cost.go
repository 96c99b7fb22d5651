package engine

import (
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-dev/caisson/backends/wasm/meter"
)

// costOf is what a function of WASI costs: a function of what the guest asks for,
// never of what the machine does with it.
func costOf(name string) func(api.Memory, []uint64) uint64 {
	switch name {
	case "fd_read", "fd_write":
		return vectors
	case "fd_pread", "fd_pwrite":
		return vectors
	case "random_get":
		return func(m api.Memory, p []uint64) uint64 { return costCall + work(m, uint32(p[1])) }
	case "fd_readdir":
		return func(m api.Memory, p []uint64) uint64 { return costFile + work(m, uint32(p[2])) }
	case "poll_oneoff":
		return func(m api.Memory, p []uint64) uint64 {
			return costCall + work(m, uint32(min(p[2]*subscriptionSize, 1<<32-1)))
		}
	}
	if strings.HasPrefix(name, "path_") || strings.HasPrefix(name, "fd_") {
		return func(api.Memory, []uint64) uint64 { return costFile }
	}
	return func(api.Memory, []uint64) uint64 { return costCall }
}

// Sizes of WASI's structures, in bytes.
const (
	subscriptionSize = 48
	vectorSize       = 8
)

// vectors is the cost of moving the bytes of a list of buffers.
func vectors(m api.Memory, p []uint64) uint64 {
	cost := uint64(costCall)
	if m == nil {
		return cost
	}
	at, n := uint32(p[1]), uint32(p[2])
	cost += work(m, uint32(min(uint64(n)*vectorSize, 1<<32-1)))
	for i := uint32(0); i < n; i++ {
		length, ok := m.ReadUint32Le(at + i*vectorSize + 4)
		if !ok {
			break
		}
		cost += work(m, length)
	}
	return cost
}

// work is the cost of work on n bytes of a guest's memory, or of all that it has.
func work(m api.Memory, n uint32) uint64 {
	if m == nil {
		return 0
	}
	return uint64(min(n, m.Size())) / meter.BytesPerUnit
}
