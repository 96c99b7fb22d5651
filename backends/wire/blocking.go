package wire

import "runtime"

// Blocks reports whether rw is of [Blocking].
func Blocks(rw any) bool {
	_, blocks := rw.(interface{ blocksThreads() })
	return blocks
}

// giveWay lets run what the caller has just woken, before a read blocks the thread and
// the processor that it would run on: it would wait for the runtime's monitor.
func giveWay(blocks bool) {
	if blocks {
		runtime.Gosched()
	}
}
