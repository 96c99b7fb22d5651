package check

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/wire"
)

const (
	// shownBytes is how much of one frame a report shows, shownFrames how many
	// frames.
	shownBytes  = 600
	shownFrames = 40
	// longBytes is how much of a long line is written at once.
	longBytes = 256 << 10
	// stderrBytes is how much of the end of an adapter's stderr is kept.
	stderrBytes = 4 << 10
	// maxEvents is how many events are kept for a clause, and how many callbacks.
	maxEvents = 1000
	// killing is how long an adapter may take to end after the trial is over,
	// beyond its budget.
	killing = 100 * time.Millisecond
	// looking is how often it is looked whether something has come about.
	looking = 20 * time.Millisecond
	// starting is how many times longer than others the first reply of an adapter may
	// take: it may have to load, or to make a machine. When it has not come after
	// noticing, whoever waits is told so.
	starting = 6
	noticing = 3 * time.Second
	// exiting is how long the end of an adapter's output waits for the exit that
	// explains it.
	exiting = time.Second
	// lettingGo is how long what an adapter has started may hold its streams after its
	// exit: a busy machine takes a moment for the end of what it was told to end.
	lettingGo = 5 * time.Second
	// maxJunk is how much of what is no frame an adapter may say beside its frames
	// before it is no adapter: as much as before the first one.
	maxJunk = wire.MaxBanner
)

// peer is an adapter that was started, and the connection to it.
type peer struct {
	run     *run
	program started
	stderr  *program.Tail
	dir     string // its own; the root is in it
	root    string
	// resolved is the root as the adapter says it.
	resolved string
	session  string
	token    string
	secret   string // the value of the variable CAISSON_CHECK
	secrets  *strings.Replacer

	ended   chan struct{} // its output has
	wedged  atomic.Bool   // a reply never came
	heard   atomic.Bool   // it has sent a frame
	closing atomic.Bool   // what it says is not listened to any more

	mu        sync.Mutex
	trial     *trial
	spoiled   string   // why what it says is not listened to any more
	strange   string   // the last that came and was nothing that was waited for, and why
	unended   []byte   // the beginning of a line that has no end yet
	log       []string // frames of the trial
	dropped   int      // how many more there were
	next      int
	pending   map[string]*waiting
	answered  map[string]bool
	nameless  chan reply // replies without an id
	events    []event
	callbacks []frame
	bodies    map[string]*body
	silent    map[string]string // ids with no reply to come, and the clause that says so
	writing   chan struct{}     // held by who writes
}

// waiting is a request without its reply yet.
type waiting struct {
	id, method string
	replies    chan reply
	left       int
}

// frame is what a peer sends.
type frame struct {
	ID       *string         `json:"id"`
	ParentID string          `json:"parent_id"`
	Method   string          `json:"method"`
	Data     json.RawMessage `json:"data"`
	Error    json.RawMessage `json:"error"`
	Detail   json.RawMessage `json:"detail"`
	Raw      int             `json:"raw"`
	Body     int64           `json:"body"`
}

// event is the data of a process event.
type event struct {
	Type, Cause string
	Process     args
}

// started is a program that was started: what this package needs of a
// [program.Program].
type started interface {
	io.ReadWriter
	Gone() <-chan struct{}
	ExitedWithin(limit time.Duration) bool
	Err() error
	CloseWithin(grace time.Duration) error
	Held() []string
}

func startProgram(o program.Options) (started, error) { return program.Start(o) }

// start starts an adapter, in the directory where this program runs: its arguments
// may be relative. What it writes has a directory of its own.
func start(r *run) (*peer, error) {
	dir, err := os.MkdirTemp(r.dir, "adapter-")
	if err != nil {
		return nil, err
	}
	p := &peer{
		run: r, stderr: &program.Tail{Max: stderrBytes}, dir: dir, root: filepath.Join(dir, "root"), session: "check-" + filepath.Base(dir),
		token: secret(), secret: secret(), ended: make(chan struct{}),
		pending: make(map[string]*waiting), answered: make(map[string]bool), nameless: make(chan reply, 16),
		bodies: make(map[string]*body), silent: make(map[string]string), writing: make(chan struct{}, 1),
	}
	p.secrets = strings.NewReplacer(p.token, "[token]", p.secret, "[secret]")
	temporary := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return nil, err
	}
	p.program, err = r.start(program.Options{
		Argv: r.Command, Stderr: p.stderr, Grace: r.Ending, LetGo: r.lettingGo(),
		Env: append(os.Environ(), "TMPDIR="+temporary, "XDG_STATE_HOME="+filepath.Join(dir, "state")),
	})
	if err != nil {
		return nil, err
	}
	go p.read()
	return p, nil
}

func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// begin gives the connection to a trial, which sees its own frames only.
func (p *peer) begin(t *trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trial, p.log, p.dropped, p.events, p.callbacks = t, nil, 0, nil, nil
}

// unusable reports whether another connection is needed for the next clause.
func (p *peer) unusable() bool {
	select {
	case <-p.ended:
		return true
	default:
		return p.wedged.Load()
	}
}

// close ends the adapter, by force where it does not end by itself: what a clause
// had to find out of that it has found out.
func (p *peer) close() {
	if p == nil {
		return
	}
	grace := p.run.Ending
	if p.wedged.Load() {
		grace = killing
	}
	_ = p.end(grace)
	<-p.ended
}

// end ends the adapter's input and waits for its exit. Whoever holds its streams after
// that is noted.
func (p *peer) end(grace time.Duration) error {
	p.closing.Store(true)
	err := p.program.CloseWithin(grace)
	if held := p.program.Held(); len(held) > 0 {
		p.run.note(clauseStreams, fmt.Sprintf("nobody may hold its streams when it has exited, but %v later these were: %s",
			lettingGo, p.redact(strings.Join(held, ", "))), p)
	}
	return err
}

// said is the end of the adapter's stderr.
func (p *peer) said() string { return p.redact(p.stderr.String()) }

// request sends a request.
func (p *peer) request(method string, data any) *waiting {
	p.mu.Lock()
	p.next++
	id := strconv.Itoa(p.next)
	p.mu.Unlock()
	w := p.expect(id, method)
	p.send(args{"id": id, "method": method, "data": data})
	return w
}

// expect is ready for the reply to an id.
func (p *peer) expect(id, method string) *waiting {
	// Two, for an id that is in flight twice: who reads the frames never waits here.
	w := &waiting{id: id, method: method, replies: make(chan reply, 2), left: 1}
	p.mu.Lock()
	p.pending[id] = w
	p.mu.Unlock()
	return w
}

// send sends a frame, with the token unless it has a member of that name; nil
// leaves it out.
func (p *peer) send(f args) {
	if token, ok := f["token"]; !ok {
		f = f.with("token", p.token)
	} else if token == nil {
		f = f.with("token", nil)
	}
	line, err := json.Marshal(f)
	if err != nil {
		line = []byte(err.Error()) // never: they are made of what JSON has
	}
	p.sendRaw(append(line, '\n'))
}

// sendPiece sends a piece of a body: one write, so that nothing comes between the
// frame and its bytes.
func (p *peer) sendPiece(id, piece string) {
	head, _ := json.Marshal(args{"id": id, "method": "body", "token": p.token, "raw": len(piece)})
	p.sendRaw(append(append(head, '\n'), piece...))
}

// sendRaw writes bytes, see sendAll.
func (p *peer) sendRaw(b []byte) {
	p.record("→", b)
	p.sendAll(func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// sendLong writes a line of size bytes, which begins with begin, and end behind them. It
// never has all of it in memory.
func (p *peer) sendLong(begin, end string, size int) {
	filling := strings.Repeat("x", longBytes)
	p.record("→", []byte(begin+filling+end))
	p.sendAll(func(w io.Writer) error {
		_, err := io.WriteString(w, begin)
		for left := size - len(begin); left > 0 && err == nil; left -= longBytes {
			_, err = io.WriteString(w, filling[:min(left, longBytes)])
		}
		if err == nil {
			_, err = io.WriteString(w, end)
		}
		return err
	})
}

// sendAll has something written, and waits until the adapter has taken it, but no longer
// than for a reply. What could not be written shows as a reply that never comes.
func (p *peer) sendAll(write func(io.Writer) error) {
	timer := time.NewTimer(p.run.Patience)
	defer timer.Stop()
	select {
	case p.writing <- struct{}{}:
	case <-timer.C:
		p.wedged.Store(true)
		return
	}
	written := make(chan struct{})
	go func() { // ended by the end of the program at the latest
		defer close(written)
		_ = write(p.program) // shows as a reply that does not come
		<-p.writing
	}()
	select {
	case <-written:
	case <-timer.C:
		p.wedged.Store(true)
	}
}

// record keeps a frame for the report.
func (p *peer) record(direction string, line []byte) {
	text := p.redact(string(bytes.TrimSpace(line[:min(len(line), 4*shownBytes)])))
	if len(text) > shownBytes {
		text = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:shownBytes], ""), len(line))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.log) >= shownFrames {
		p.log = slices.Delete(p.log, 0, 1)
		p.dropped++
	}
	p.log = append(p.log, direction+" "+text)
}

// redact takes secrets out of what is shown.
func (p *peer) redact(s string) string {
	return p.secrets.Replace(s)
}

// shown are the frames of the trial so far.
func (p *peer) shown() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped > 0 {
		return append([]string{fmt.Sprintf("(%d frames before)", p.dropped)}, p.log...)
	}
	return slices.Clone(p.log)
}

// answer gives a reply to who waits for it.
func (p *peer) answer(f frame) {
	r := reply{data: f.Data, detail: f.Detail}
	if len(f.Error) > 0 && string(f.Error) != "null" {
		if json.Unmarshal(f.Error, &r.failed) != nil {
			r.failed = string(f.Error)
			p.run.note(clauseErrorText, "error must be a string, not "+p.redact(r.failed), p)
		}
	}
	id := *f.ID
	if id == "" {
		select {
		case p.nameless <- r:
		default:
		}
		return
	}
	p.mu.Lock()
	w, again, silent := p.pending[id], p.answered[id], p.silent[id]
	p.answered[id] = true
	if w != nil {
		if w.left--; w.left == 0 {
			delete(p.pending, id)
		}
		if f.Body > 0 {
			p.bodies[id] = &body{waiting: w, reply: r, size: f.Body}
		}
	}
	p.mu.Unlock()
	switch {
	case w != nil && f.Body == 0:
		w.replies <- r
	case w != nil: // delivered with its body
	case silent != "":
		p.run.note(silent, "what came for the id "+id+" must have no reply", p)
	case again:
		p.run.note(clauseOneReply, "a request must have one reply, but "+id+" has another one", p)
	default:
		p.wonder("a reply with the id %q, which no request has", id)
		p.run.note(clauseOneReply, "a reply must be to a request, but nothing has the id "+id, p)
	}
}

// cancel cancels a request.
func (p *peer) cancel(id string) {
	p.silence(id, clauseCancelSilent)
	p.send(args{"id": id, "method": "cancel"})
}

// silence says that no reply to an id is to come, but for one that is waited for.
func (p *peer) silence(id, clause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent[id] = clause
}

// body is one that comes in pieces.
type body struct {
	*waiting
	reply reply
	size  int64
	taken int64 // of it, as the sender was told
}

// piece adds to a body, and delivers the reply with the last one.
func (p *peer) piece(id string, raw []byte) {
	p.mu.Lock()
	b := p.bodies[id]
	if b == nil || int64(len(b.reply.body)+len(raw)) > b.size {
		p.mu.Unlock()
		p.run.note(clauseBulk, "a piece must belong to a body that was announced, and not be more than that: id "+id, p)
		return
	}
	b.reply.body = append(b.reply.body, raw...)
	total := int64(len(b.reply.body))
	whole := total == b.size
	if whole {
		delete(p.bodies, id)
	}
	p.mu.Unlock()
	if whole {
		b.replies <- b.reply
		return
	}
	if total-b.taken > wire.BodyWindow/2 {
		b.taken = total
		go p.send(args{"id": id, "method": "body_taken", "body": total}) // the reader never waits for a writer
	}
}

func (p *peer) happened(f frame) {
	var e event
	if json.Unmarshal(f.Data, &e) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) < maxEvents {
		p.events = append(p.events, e)
	}
}

// about are the events of one process so far.
func (p *peer) about(id string) (list []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Process["id"] == id {
			list = append(list, e)
		}
	}
	return list
}
