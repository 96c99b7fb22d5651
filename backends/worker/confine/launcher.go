package confine

import "runtime"

// Launcher is one thread on which commands are started under a [Policy]. What
// is forked on it inherits the limits and cannot shed them.
type Launcher struct {
	do   chan func()
	stop chan struct{}
	done chan struct{}
}

// NewLauncher starts the thread and limits it. It fails with
// [tool.Unsupported], naming the Landlock version found and needed, when the
// system cannot hold the policy.
func NewLauncher(p Policy) (*Launcher, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return start(p)
}

// Do runs f on the thread and waits for it. Calls are served one at a time, in
// order. f may fork and must not panic, exit its goroutine or unlock the
// thread. Do reports false, and does not run f, after Close.
func (l *Launcher) Do(f func()) bool {
	ran := make(chan struct{})
	select {
	case l.do <- func() { defer close(ran); f() }:
		<-ran
		return true
	case <-l.done:
		return false
	}
}

// Close ends the thread, after the call that it serves. Children that asked to
// die with their parent thread die now.
func (l *Launcher) Close() {
	select {
	case l.stop <- struct{}{}:
		<-l.done
	case <-l.done:
	}
}

// startThread makes a thread that runs limit and then serves.
func startThread(limit func() error) (*Launcher, error) {
	l := &Launcher{do: make(chan func()), stop: make(chan struct{}), done: make(chan struct{})}
	limited := make(chan error)
	go l.serve(limit, limited)
	if err := <-limited; err != nil {
		return nil, err
	}
	return l, nil
}

// serve owns the thread. It is never unlocked, so that no other goroutine ever
// runs on it, and ends with the goroutine.
func (l *Launcher) serve(limit func() error, limited chan<- error) {
	runtime.LockOSThread()
	if onMainThread() {
		// The main thread cannot end. Hold it until another one is held too.
		held := make(chan struct{})
		go l.serve(func() error { close(held); return limit() }, limited)
		<-held
		runtime.UnlockOSThread()
		return
	}
	defer close(l.done)
	err := limit()
	limited <- err
	if err != nil {
		return
	}
	for {
		select {
		case f := <-l.do:
			f()
		case <-l.stop:
			return
		}
	}
}
