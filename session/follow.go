package session

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/caisson-dev/caisson/session/store"
)

// ownersInterval is how often it is looked whether the services live that have
// sessions: one that is killed tells nobody.
const ownersInterval = 2 * time.Second

// lookShare is how much longer than a look the next one is waited for: however many sessions
// there are and however often they change, looking takes a tenth of a processor at most.
const lookShare = 10

// maxOwnerless is how many sessions are remembered of which the log says that their owner
// cannot be seen. Of more, which may have been deleted long ago, it says so again.
const maxOwnerless = 1000

// follower tells the sink of the sessions that are not this service's, as they change,
// and of artifacts that others publish.
type follower struct {
	m    *Manager
	once sync.Once

	asks, stop, done chan struct{} // asks holds at most one request to look
	newWatcher       func() (*fsnotify.Watcher, error)

	// passed is that a look came upon a session that this service was just taking or
	// leaving, and that another one is due when it has.
	passed atomic.Bool

	// mu orders what the sink is told of sessions, and guards the rest.
	mu sync.Mutex
	// told is how the sink knows each session; nil while nobody wants to follow.
	told map[string]*aspect
	// ownerless are the sessions of which it cannot be seen who has them, as the log says.
	ownerless map[string]bool

	rang time.Time       // when the bell of the artifacts was written; of run alone
	seen map[string]seen // the bindings that were read; of looks alone, of which there is one at a time
}

// seen is a binding that was read: what it says but for the owner, which is not in it.
type seen struct {
	mark   store.Mark
	aspect aspect
}

// aspect is what of a session may change.
type aspect struct {
	state  State
	owner  int
	root   string
	labels string
	err    string
}

func aspectOf(s Session) *aspect {
	a := &aspect{state: s.State, owner: s.HeldBy, root: s.Root, labels: fmt.Sprint(s.Labels)}
	if s.Err != nil {
		a.err = s.Err.Error()
	}
	return a
}

func newFollower(m *Manager) *follower {
	return &follower{
		m: m, asks: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		newWatcher: fsnotify.NewWatcher, seen: map[string]seen{},
	}
}

// Follow lets the sink be told, from now on, also of the sessions that are not this
// service's: with [Sink.SessionSeen] when another service takes, changes or gives up
// one, or dies, and with [Sink.SessionRemoved] when it deletes one; and with
// [Sink.ArtifactsChanged] when somebody publishes or deletes. Again it does nothing.
func (m *Manager) Follow() {
	f := m.follow
	f.once.Do(func() {
		notify, err := f.newWatcher()
		for _, bell := range []string{m.store.Bell(), f.artifactsBell()} {
			if err == nil && bell != "" {
				err = notify.Add(filepath.Dir(bell))
			}
		}
		if err != nil {
			m.log.Warn("what other services change is noticed late", "error", err)
		}
		f.mu.Lock()
		f.told = map[string]*aspect{}
		f.mu.Unlock()
		f.look(false)
		go f.run(notify, err == nil)
	})
}

// close ends the following, and the wait for who might begin it.
func (f *follower) close() {
	f.once.Do(func() { close(f.done) })
	close(f.stop)
	<-f.done
}

// tell tells the sink of a session of this service's.
func (f *follower) tell(s Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told != nil {
		f.told[s.ID] = aspectOf(s)
	}
	f.m.sink.SessionChanged(s)
}

// note notes that somebody was answered so about a session that is not this service's:
// what becomes of it from there on is told. Where the sink knows it otherwise, it may
// be the answer that is older, and there is another look.
func (f *follower) note(s Session) {
	own, _ := f.m.has(s.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told == nil || own {
		return
	}
	was, now := f.told[s.ID], aspectOf(s)
	if was == nil || *was != *now {
		f.again()
	}
	f.told[s.ID] = now
}

// missed has sessions told again that were told while the list was read, by which somebody
// is answered, and are not in it: who takes that for all that there is forgets them.
func (f *follower) missed(list []store.Listed) {
	listed := make(map[string]bool, len(list))
	for _, entry := range list {
		listed[entry.ID] = true
	}
	f.mu.Lock()
	absent := slices.DeleteFunc(slices.Collect(maps.Keys(f.told)), func(id string) bool { return listed[id] })
	f.mu.Unlock()
	for _, id := range absent {
		if own, _ := f.m.has(id); own {
			continue // whoever opened it was told by that
		}
		f.mu.Lock()
		if f.told[id] != nil {
			f.told[id] = &aspect{} // as no session is: the next look tells it, or its end
			f.again()
		}
		f.mu.Unlock()
	}
}

// removed tells the sink that this service has deleted a session.
func (f *follower) removed(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.told, id)
	f.m.sink.SessionRemoved(id)
}

// again requests a look, unless one is requested already.
func (f *follower) again() {
	select {
	case f.asks <- struct{}{}:
	default:
	}
}

func (f *follower) run(notify *fsnotify.Watcher, watched bool) {
	defer close(f.done)
	var events chan fsnotify.Event
	var errs chan error
	if notify != nil {
		events, errs = notify.Events, notify.Errors
		defer func() {
			if err := notify.Close(); err != nil {
				f.m.log.Warn("the watch of the sessions was not ended", "error", err)
			}
		}()
	}
	// What the timer is for beside the owners: bells that rang since.
	var sessions, artifacts bool
	timer := time.NewTimer(ownersInterval)
	defer timer.Stop()
	wait := settle
	soon := func(bell *bool) {
		if !sessions && !artifacts {
			timer.Reset(wait)
		}
		*bell = true
	}
	for {
		select {
		case <-f.stop:
			return
		case e := <-events:
			switch e.Name {
			case f.m.store.Bell():
				soon(&sessions)
			case f.artifactsBell():
				soon(&artifacts)
			}
		case err := <-errs:
			f.m.log.Warn("what other services change may be missed", "error", err)
			soon(&sessions)
			soon(&artifacts)
		case <-f.asks:
			soon(&sessions)
		case <-timer.C:
			if artifacts || !watched && f.rangUnheard() {
				f.m.sink.ArtifactsChanged()
			}
			if sessions || !watched || f.orphaned() {
				begun := time.Now()
				f.look(true)
				wait = max(settle, lookShare*time.Since(begun))
			}
			sessions, artifacts = false, false
			if !watched || len(f.owners()) > 0 {
				timer.Reset(max(ownersInterval, wait))
			}
		}
	}
}

// rangUnheard reports whether the bell of the artifacts was written since it was asked
// last, where no watch tells of that. It is of run alone.
func (f *follower) rangUnheard() bool {
	info, err := os.Stat(f.artifactsBell())
	if err != nil || info.ModTime().Equal(f.rang) {
		return false
	}
	f.rang = info.ModTime()
	return true
}

// artifactsBell is the file that is written when the list of artifacts changes; "" where
// there are none.
func (f *follower) artifactsBell() string {
	if f.m.o.Artifacts == nil {
		return ""
	}
	return f.m.o.Artifacts.Bell()
}

// owners are the services that the sink knows to have sessions, by session.
func (f *follower) owners() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	owners := map[string]int{}
	for id, a := range f.told {
		if a.owner != 0 {
			owners[id] = a.owner
		}
	}
	return owners
}

// orphaned reports whether one of them does not have its session any more.
func (f *follower) orphaned() bool {
	for id, pid := range f.owners() {
		if now, err := f.m.store.Owner(id); err == nil && now != pid {
			return true
		}
	}
	return false
}

// look compares the sessions on disk with what the sink knows of them, and tells what is
// not as it was; without announce it only notes it.
func (f *follower) look(announce bool) {
	f.mu.Lock()
	before := maps.Clone(f.told)
	f.mu.Unlock()
	ids, err := f.m.store.IDs()
	if err != nil {
		f.m.log.Warn("the sessions of other services cannot be listed", "error", err)
		return
	}
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		own, _ := f.m.has(id)
		was := before[id]
		if own || was != nil && f.unchanged(id, *was) {
			there[id] = true
			continue
		}
		s, ok := f.read(id)
		if !ok {
			continue
		}
		there[id] = true
		if now := aspectOf(s); was == nil || *was != *now {
			f.put(id, was, func() {
				f.told[id] = now
				if announce {
					f.m.sink.SessionSeen(s)
				}
			})
		}
	}
	maps.DeleteFunc(f.seen, func(id string, _ seen) bool { return !there[id] })
	for id, was := range before {
		if !there[id] {
			f.put(id, was, func() {
				delete(f.told, id)
				f.m.sink.SessionRemoved(id)
			})
		}
	}
}

// unchanged reports whether the session is still what it was for the sink, as far as that
// is known without reading its binding again: most of them are closed for long.
func (f *follower) unchanged(id string, was aspect) bool {
	last, ok := f.seen[id]
	if !ok || !last.mark.Same(f.m.store.Mark(id)) {
		return false
	}
	last.aspect.owner = f.m.ownerOf(id)
	return last.aspect == was
}

// read reads a session and notes what was read; it reports false when there is none.
func (f *follower) read(id string) (Session, bool) {
	mark := f.m.store.Mark(id)
	saved, err := f.m.store.Load(id)
	if errors.Is(err, store.ErrNotFound) {
		return Session{}, false // being made or removed just now
	}
	s := f.m.describeListed(store.Listed{ID: id, Session: saved, Err: err})
	delete(f.seen, id)
	if err == nil {
		a := *aspectOf(s)
		a.owner = 0
		f.seen[id] = seen{mark, a}
	}
	return s, true
}

// put does it, unless the session is this service's: of those it tells itself. Of one that
// it is just taking or leaving there is another look when it has, and of one that it has
// told of since the look began.
func (f *follower) put(id string, was *aspect, do func()) {
	own, passing := f.m.has(id)
	if own {
		return
	}
	if passing {
		f.passed.Store(true)
		if _, passing = f.m.has(id); !passing { // which may have ended before that was noted
			f.released()
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told[id] != was {
		f.again()
		return
	}
	do()
}

// released requests the look that is due when this service has taken or left a session.
func (f *follower) released() {
	if f.passed.Swap(false) {
		f.again()
	}
}

// has reports whether the session is open in this service, and whether it is just being
// opened, closed or deleted here.
func (m *Manager) has(id string) (own, passing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id] != nil, m.claims[id] != nil
}

// describeListed is a session of the state directory as it is known from there, with the
// service that has it.
func (m *Manager) describeListed(entry store.Listed) Session {
	if entry.Err != nil {
		return Session{ID: entry.ID, State: StateFailed, Err: known(entry.Err)}
	}
	s := describe(entry.Session)
	s.HeldBy = m.ownerOf(entry.ID)
	return s
}

// ownerOf is the other service that has the session, by its process id; 0 for none. That
// cannot be known of a session that this service is about to take or to leave.
func (m *Manager) ownerOf(id string) int { return m.otherOwner(id, m.store.Owner) }

// otherOwner is ownerOf, where owner says who has it.
func (m *Manager) otherOwner(id string, owner func(id string) (int, error)) int {
	ours := func() bool {
		own, passing := m.has(id)
		return own || passing
	}
	before := ours() // and given up, perhaps, by the time that the owner is known
	pid, err := owner(id)
	if m.follow.unclear(id, err) {
		m.log.Warn("it cannot be seen who has a session", "session", id, "error", err)
	}
	if err != nil || pid == os.Getpid() && (before || ours()) {
		return 0
	}
	return pid
}

// unclear notes whether it could be seen who has a session, and reports whether it could
// not for the first time: it is asked with each look.
func (f *follower) unclear(id string, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.ownerless, id)
		return false
	}
	if f.ownerless[id] {
		return false
	}
	if f.ownerless == nil || len(f.ownerless) >= maxOwnerless {
		f.ownerless = map[string]bool{}
	}
	f.ownerless[id] = true
	return true
}
