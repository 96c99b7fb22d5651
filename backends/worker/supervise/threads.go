package supervise

import (
	"runtime"
	"sync"
)

// StockThreads makes threads until there are n that the runtime keeps. A Go program that
// gets no thread when it needs one ends at once, and commands that use up a container's or
// a user's limit of processes are not to take their worker, the service, or everything,
// along. Where there is little room there are fewer, or none: see [ThreadRoom].
func StockThreads(n int) {
	var made, over sync.WaitGroup
	leave := make(chan struct{})
	for range min(n, ThreadRoom()) {
		made.Add(1)
		over.Go(func() {
			// One that is locked has its thread for itself, also while it waits.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-leave
		})
	}
	made.Wait()
	close(leave)
	over.Wait()
}
