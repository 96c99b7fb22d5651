package wire

// Frames are read by one goroutine at a time. A request that was over soon the last
// time it runs itself: to hand it to another goroutine wakes a thread, which costs as
// much as a small read. When that holds it up after all, by a slow disk or a host that
// does not read, another goroutine reads on in its place: see [pace.Relief].

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
	r.kind = s.paces.Of(r.Method, name)
	return r.kind.Soon()
}
