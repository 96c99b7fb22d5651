package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/session"
)

// Options say how a [Log] is kept.
type Options struct {
	// MaxBytes is how large the file becomes before it is moved to its name and ".1",
	// in the place of the one before it; 0 means [DefaultMaxBytes].
	MaxBytes int64
	// Secrets are values that no line may hold; nil knows none. It is asked every few
	// seconds, while there are texts to search.
	Secrets func() []string
	// Log is told once when the file cannot be written; nil drops it.
	Log *slog.Logger
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Log is an event log that is being written.
type Log struct {
	o     Options
	queue chan event
	stop  chan struct{}
	done  chan struct{}
	lost  atomic.Int64
	err   error // set before done is closed

	// The writing goroutine's own:
	file    *file
	secrets redactor
	failing bool // the last write failed, and that was told
}

// Open opens the file, which is made 0600 when it is missing and is appended to
// when not. It must be a regular file of this user's own and no link.
func Open(path string, o Options) (*Log, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxBytes < MinMaxBytes {
		return nil, fmt.Errorf("an event log of %d bytes is too small: give it at least %d", o.MaxBytes, MinMaxBytes)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	f, err := openFile(path, o.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("the event log %s cannot be used: %w", path, err)
	}
	l := &Log{
		o: o, file: f, secrets: redactor{values: o.Secrets, now: o.Now},
		queue: make(chan event, maxQueue), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go l.run()
	return l, nil
}

// Close writes what waits, for at most 2 s, and closes the file. No event may come
// any more.
func (l *Log) Close() error {
	close(l.stop)
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return errors.New("the event log could not be written to its end in time")
	}
}

// event is a line before its texts were searched for secrets.
type event struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`

	SessionID string `json:"sessionId,omitempty"`
	CallID    string `json:"callId,omitempty"`
	RunID     string `json:"runId,omitempty"`
	NodeName  string `json:"nodeName,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Profile   string `json:"profile,omitempty"`
	Backend   string `json:"backend,omitempty"`
	Actor     *actor `json:"actor,omitempty"`
	// DurationMS is set in terminal events.
	DurationMS *int64   `json:"durationMs,omitempty"`
	Failure    *failure `json:"failure,omitempty"`

	Session  *sessionState  `json:"session,omitempty"`
	Process  *processState  `json:"process,omitempty"`
	Artifact *artifactState `json:"artifact,omitempty"`

	// Lost is how many events are missing before this line.
	Lost int64 `json:"lost,omitempty"`
}

type actor struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

type failure struct {
	Kind    string `json:"kind"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// quotes says that what the message quotes may be what a call was given, or what
	// its program printed.
	quotes bool
	// about is the file of an environment that the error is about, as far as it says so.
	about string
}

type sessionState struct {
	State         string   `json:"state"`
	EnvironmentID string   `json:"environmentId"`
	Workspace     string   `json:"workspace,omitempty"`
	ParentID      string   `json:"parentId,omitempty"`
	Failure       *failure `json:"failure,omitempty"`
}

type processState struct {
	Type          string     `json:"type"`
	Cause         string     `json:"cause,omitempty"`
	ID            string     `json:"id"`
	OperationID   string     `json:"operationId,omitempty"`
	Status        string     `json:"status"`
	PID           int        `json:"pid,omitempty"`
	ExitCode      *int       `json:"exitCode,omitempty"`
	Signal        string     `json:"signal,omitempty"`
	StartedAt     time.Time  `json:"startedAt"`
	EndedAt       *time.Time `json:"endedAt,omitempty"`
	TotalBytes    int64      `json:"totalBytes"`
	EnvironmentID string     `json:"environmentId"`
}

type artifactState struct {
	ID        string `json:"id"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// put queues an event, or counts it as lost.
func (l *Log) put(e event) {
	e.Time = l.o.Now()
	select {
	case l.queue <- e:
	default:
		l.lost.Add(1)
	}
}

// run writes until the log is closed.
func (l *Log) run() {
	defer close(l.done)
	for {
		select {
		case e := <-l.queue:
			l.batch(e)
		case <-l.stop:
			for {
				select {
				case e := <-l.queue:
					l.batch(e)
				default:
					l.flushLost()
					l.err = l.file.close()
					return
				}
			}
		}
	}
}

// batch writes an event with those that wait behind it.
func (l *Log) batch(e event) {
	l.flushLost()
	n := int64(1)
	lines := l.line(nil, e)
	for len(lines) < 64<<10 {
		select {
		case e = <-l.queue:
			lines = l.line(lines, e)
			n++
			continue
		default:
		}
		break
	}
	l.write(lines, n)
}

// flushLost says how many events are missing here.
func (l *Log) flushLost() {
	if n := l.lost.Swap(0); n > 0 {
		l.write(l.line(nil, event{Time: l.o.Now(), Event: "log/lost", Lost: n}), n)
	}
}

// write writes lines that stand for n events.
func (l *Log) write(lines []byte, n int64) {
	err := l.file.write(lines)
	if err != nil {
		l.lost.Add(n)
		if !l.failing {
			l.o.Log.Error("the event log cannot be written; what is missing there is counted", "error", err)
		}
	}
	l.failing = err != nil
}

// line is an event as it stands in the file.
func (l *Log) line(to []byte, e event) []byte {
	for _, f := range []*failure{e.Failure, e.stateFailure()} {
		if f != nil {
			if f.quotes {
				f.Message = withoutGiven(f.Message, f.about)
			}
			f.Message = clip(l.secrets.redact(f.Message))
		}
	}
	raw, err := json.Marshal(e)
	if err != nil { // a time that cannot be written
		l.lost.Add(1)
		return to
	}
	return append(append(to, raw...), '\n')
}

func (e event) stateFailure() *failure {
	if e.Session == nil {
		return nil
	}
	return e.Session.Failure
}

var _ session.Sink = (*Log)(nil)
