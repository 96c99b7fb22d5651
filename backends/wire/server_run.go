package wire

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Frames are read by one goroutine at a time. A request that was over soon the last
// time it runs itself: to hand it to another goroutine wakes a thread, which costs as
// much as a small read. When that holds it up after all, by a slow disk or a host that
// does not read, another goroutine reads on in its place: see relief.

// readOn reads, and when another goroutine reads in its place goes on as one that
// runs requests.
func (s *Server) readOn() {
	if err := s.read(); err != nil {
		s.end(err)
		return
	}
	s.idleAway()
}

// relieve has another goroutine read on.
func (s *Server) relieve() {
	select {
	case <-s.ended:
	default:
		go s.readOn()
	}
}

// dispatch has another goroutine run r.
func (s *Server) dispatch(r *Request) {
	select {
	case s.idle <- r:
	default:
		go s.work(r)
	}
}

// work runs r, and then what comes while it is idle.
func (s *Server) work(r *Request) {
	s.run(r)
	s.idleAway()
}

// idleAway runs what comes while it is idle: the stack of a goroutine that has run a
// request is large enough for the next one, and a new one's is copied several times
// before it is.
func (s *Server) idleAway() {
	for s.idlers.Add(1) <= maxIdlers {
		select {
		case r := <-s.idle:
			s.idlers.Add(-1)
			s.run(r)
		case <-s.ended:
			return
		}
	}
	s.idlers.Add(-1)
}

// runsHere reports whether the goroutine that reads runs r itself. What has come
// behind it already is not to wait.
func (s *Server) runsHere(r *Request) bool {
	if r.in != nil || len(r.Data) > maxInline || s.reader.buffered() {
		return false
	}
	name := ""
	switch r.Method {
	case MethodExecute:
		name = r.parseExecute().call.Call.Name
	case MethodStat, MethodReadDirectory, MethodReadFile, MethodWriteFile:
	default:
		return false // how long it takes is not for it to say: it waits for something
	}
	r.soon = s.pace.of(r.Method, name)
	return r.soon.Load()
}

// pace remembers which requests were over soon the last time.
type pace struct {
	seed maphash.Seed
	soon [64]atomic.Bool // by the hash of the method and the tool
}

func (p *pace) init() { p.seed = maphash.MakeSeed() }

// of is where such a request is remembered. Two that share a place share its fate,
// which does no harm.
func (p *pace) of(method, tool string) *atomic.Bool {
	var h maphash.Hash
	h.SetSeed(p.seed)
	h.WriteString(method)
	h.WriteString(tool)
	return &p.soon[h.Sum64()%uint64(len(p.soon))]
}

// note remembers how long a request took.
func (r *Request) note(took time.Duration) {
	if soon := took < quickRequest; r.soon.Load() != soon {
		r.soon.Store(soon)
	}
}

// relief has another goroutine read on when the one that reads has run one request
// for longer than reliefTime.
type relief struct {
	// turn is odd while the one that reads runs a request; whoever makes it even
	// goes on reading.
	turn  atomic.Uint64
	stall *stall
	read  func()
}

func (l *relief) init(read func()) {
	l.read = read
	l.stall = newStall(reliefTime, l.overdue)
}

// begin says that the one that reads begins to run a request.
func (l *relief) begin() uint64 {
	turn := l.turn.Add(1) // before the stall may find that it takes long
	l.stall.begin()
	return turn
}

// end says that it is done, and reports whether it is still the one that reads.
func (l *relief) end(turn uint64) bool {
	if !l.turn.CompareAndSwap(turn, turn+1) {
		return false // what the stall looks at is another one's
	}
	l.stall.end()
	return true
}

// overdue has another goroutine read on, unless the request has just ended.
func (l *relief) overdue() {
	if turn := l.turn.Load(); turn%2 == 1 && l.turn.CompareAndSwap(turn, turn+1) {
		l.read()
	}
}
