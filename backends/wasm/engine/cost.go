package engine

import (
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-dev/caisson/backends/wasm/meter"
)

// cost is what a function of WASI costs: a function of what the guest asks for, and
// of what it was given, never of what the machine does with it.
type cost struct {
	// call is what every call costs.
	call uint64
	// bytes is the number of the parameter that is a size, in units of size bytes, of
	// memory that is read or written; 0 for none.
	bytes int
	size  uint64
	// vectors says that the second and third parameter are a list of buffers.
	vectors bool
	// paths are the numbers of the parameters that are lengths of paths.
	paths []int
	// given says that the guest is told all of its arguments, or variables.
	given func(*guest) uint64
}

// Sizes of WASI's structures, in bytes.
const (
	subscriptionSize = 48
	vectorSize       = 8
	pointerSize      = 4
)

// costs are those of the functions that do work on something. All others cost one
// call.
var costs = map[string]cost{
	"args_get":    {call: costCall, given: func(g *guest) uint64 { return g.arguments }},
	"environ_get": {call: costCall, given: func(g *guest) uint64 { return g.variables }},

	"random_get":  {call: costCall, bytes: 1, size: 1},
	"poll_oneoff": {call: costCall, bytes: 2, size: subscriptionSize},

	"fd_read":    {call: costCall, vectors: true},
	"fd_write":   {call: costCall, vectors: true},
	"fd_pread":   {call: costCall, vectors: true},
	"fd_pwrite":  {call: costCall, vectors: true},
	"fd_readdir": {call: costFile, bytes: 2, size: 1},

	"fd_advise":             {call: costFile},
	"fd_allocate":           {call: costFile},
	"fd_close":              {call: costFile},
	"fd_datasync":           {call: costFile},
	"fd_fdstat_get":         {call: costFile},
	"fd_fdstat_set_flags":   {call: costFile},
	"fd_fdstat_set_rights":  {call: costFile},
	"fd_filestat_get":       {call: costFile},
	"fd_filestat_set_size":  {call: costFile},
	"fd_filestat_set_times": {call: costFile},
	"fd_prestat_get":        {call: costFile},
	"fd_prestat_dir_name":   {call: costFile, paths: []int{2}},
	"fd_renumber":           {call: costFile},
	"fd_seek":               {call: costFile},
	"fd_sync":               {call: costFile},
	"fd_tell":               {call: costFile},

	"path_create_directory":   {call: costFile, paths: []int{2}},
	"path_filestat_get":       {call: costFile, paths: []int{3}},
	"path_filestat_set_times": {call: costFile, paths: []int{3}},
	"path_link":               {call: costFile, paths: []int{3, 6}},
	"path_open":               {call: costFile, paths: []int{3}},
	"path_readlink":           {call: costFile, paths: []int{2, 4}},
	"path_remove_directory":   {call: costFile, paths: []int{2}},
	"path_rename":             {call: costFile, paths: []int{2, 5}},
	"path_symlink":            {call: costFile, paths: []int{1, 4}},
	"path_unlink_file":        {call: costFile, paths: []int{2}},
}

// costOf is what a function of WASI costs.
func costOf(name string) cost {
	if c, ok := costs[name]; ok {
		return c
	}
	return cost{call: costCall}
}

// of is what one call costs.
func (c cost) of(g *guest, m api.Memory, params []uint64) uint64 {
	units := c.call
	has := size(m)
	if c.bytes > 0 {
		units += min(uint64(uint32(params[c.bytes]))*c.size, has) / meter.BytesPerUnit
	}
	for _, i := range c.paths {
		units += min(uint64(uint32(params[i])), has) * costPathByte
	}
	if c.vectors {
		units += vectors(m, uint32(params[1]), uint32(params[2]), has)
	}
	if c.given != nil {
		units += c.given(g) / meter.BytesPerUnit
	}
	return units
}

// longest is how long the longest path is that a guest gives, in bytes.
func (c cost) longest(params []uint64) (n uint64) {
	for _, i := range c.paths {
		n = max(n, uint64(uint32(params[i])))
	}
	return n
}

// vectors is the cost of a list of n buffers: each of them is a call of its own for
// whoever reads or writes it.
func vectors(m api.Memory, at, n uint32, has uint64) uint64 {
	held := min(uint64(n), has/vectorSize) // more are not in the memory
	units := held * costCall
	for i := range uint32(held) {
		length, ok := m.ReadUint32Le(at + i*vectorSize + 4)
		if !ok {
			break
		}
		units += min(uint64(length), has) / meter.BytesPerUnit
	}
	return units
}

// size is how many bytes a memory has. One of 4 GiB says of itself that it has none.
func size(m api.Memory) uint64 {
	if m == nil {
		return 0
	}
	if n := m.Size(); n > 0 {
		return uint64(n)
	}
	if _, ok := m.ReadUint32Le(0); ok {
		return 1 << 32
	}
	return 0
}
