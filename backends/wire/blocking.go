package wire

import "runtime"

// Blocks reports whether reads and writes of rw each block a thread, as those of
// [Blocking] do, and of whatever else says so by its method BlocksThreads.
func Blocks(rw any) bool {
	b, says := rw.(interface{ BlocksThreads() bool })
	return says && b.BlocksThreads()
}

// giveWay lets run what the caller has just woken, before a read blocks the thread and
// the processor that it would run on: it would wait for the runtime's monitor.
func giveWay(blocks bool) {
	if blocks {
		runtime.Gosched()
	}
}
