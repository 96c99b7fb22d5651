package session

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/caisson-dev/caisson/diskfile"
	"github.com/caisson-dev/caisson/session/config"
)

// settle is how long after the last change of the configuration, or of what other services
// have, it is looked at: a file is written, and a session made, in several steps.
const settle = 100 * time.Millisecond

// watch tells the sink when the user's file changed. Sessions never depend on
// it: the file is read again for each new one.
type watch struct {
	m      *Manager
	file   string
	notify *fsnotify.Watcher // nil when nothing can be watched
	asks   chan struct{}     // holds at most one request to look
	stop   chan struct{}
	done   chan struct{}
}

// startWatch begins to watch the file, also one that is not there yet.
func startWatch(m *Manager) *watch {
	w := &watch{
		m: m, file: m.o.Config.Path(),
		asks: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if w.file != "" {
		var err error
		if w.notify, err = fsnotify.NewWatcher(); err != nil {
			m.log.Warn("changes of the configuration are not noticed by themselves", "error", err)
		}
	}
	w.add()
	go w.run(w.content())
	return w
}

func (w *watch) close() error {
	close(w.stop)
	<-w.done
	if w.notify == nil {
		return nil
	}
	return w.notify.Close()
}

// ask requests a look, unless one is requested already.
func (w *watch) ask() {
	select {
	case w.asks <- struct{}{}:
	default:
	}
}

// add watches the nearest directory above the file that is there: a file is
// replaced rather than written, and its directory may be made later.
func (w *watch) add() {
	if w.notify == nil {
		return
	}
	dir := filepath.Dir(w.file)
	for w.notify.Add(dir) != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
}

// concerns reports whether an event may be about the file or a directory above.
func (w *watch) concerns(name string) bool {
	return name == w.file || strings.HasPrefix(w.file, name+string(filepath.Separator))
}

// content is a hash of the file, or what is wrong with reading it. What is no
// configuration in any case, such as a pipe, is not read: that may wait, or
// never end.
func (w *watch) content() string {
	if w.file == "" {
		return ""
	}
	f, info, err := diskfile.Open(w.file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info.Size() > config.MaxFile {
		return fmt.Sprint(info.Size(), info.ModTime())
	}
	raw, err := io.ReadAll(io.LimitReader(f, config.MaxFile+1))
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(raw)
	return string(sum[:])
}

func (w *watch) run(last string) {
	defer close(w.done)
	var events chan fsnotify.Event
	var errs chan error
	if w.notify != nil {
		events, errs = w.notify.Events, w.notify.Errors
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.stop:
			return
		case e := <-events:
			if w.concerns(e.Name) {
				timer.Reset(settle)
			}
		case err := <-errs:
			w.m.log.Warn("changes of the configuration may be missed", "error", err)
			timer.Reset(settle)
		case <-w.asks:
			timer.Reset(0)
		case <-timer.C:
			w.add()
			now := w.content()
			if now == last {
				continue
			}
			last = now
			_, err := w.m.o.Config.Load()
			w.m.sink.ConfigChanged(known(err))
		}
	}
}

// ConfigChanged looks at the configuration and tells the sink when it has
// changed. A client that saved the file need not wait for the watch.
func (m *Manager) ConfigChanged() { m.watch.ask() }
