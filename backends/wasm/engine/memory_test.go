package engine

import "github.com/tetratelabs/wazero/api"

// sizedMemory is a guest's memory of which only the size is asked.
type sizedMemory struct {
	api.Memory
	size uint32
}

func (s sizedMemory) Size() uint32 { return s.size }

func sized(n uint32) api.Memory { return sizedMemory{size: n} }

// ReadUint32Le reads buffers of a list that are empty.
func (sizedMemory) ReadUint32Le(uint32) (uint32, bool) { return 0, true }
