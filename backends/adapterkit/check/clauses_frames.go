package check

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/wire"
)

func framing() []clause {
	return []clause{
		rule(clauseFramesOnly, sectionFrames, "after the first frame its output is frames and nothing else", driveOrdinary),
		rule(clauseOneReply, sectionFrames, "each request has exactly one reply", driveOrdinary),
		rule(clauseErrorText, sectionFrames, "error is text", func(t *trial) { t.ask("check/unknown", args{}) }),
		rule("unknown-members", sectionFrames, "members that it does not know are ignored", driveUnknownMembers),
		rule("unknown-method", sectionFrames, "an unknown method is an error", func(t *trial) {
			t.refuses("there is no such method", "check/unknown", args{})
		}),
		rule("missing-id", sectionFrames, "a request without an id is an error", driveMissingID),
		rule("duplicate-id", sectionFrames, "an id that is in flight is an error", driveDuplicateID),
		rule("unasked-callback", sectionFrames, "an answer to nothing that it asked is ignored", func(t *trial) {
			t.ignored(args{"id": "check-nothing", "method": "callback", "data": args{"id": "check-nothing", "data": args{}}})
		}),
		rule("concurrent", sectionFrames, "requests run at the same time, and replies come in any order", driveConcurrent),
		rule(clauseCancel, sectionFrames, "a cancelled request is answered, at once when it can", driveCancel),
		rule(clauseCancelSilent, sectionFrames, "a cancel has no reply of its own", driveCancelSilent).given(clauseCancel),
		rule("cancel-ends-work", sectionFrames, "a cancelled request is answered when its work has really ended", driveCancelEnds).given(clauseCancel),
		rule("cancel-unknown", sectionFrames, "a cancel of nothing is ignored", func(t *trial) {
			t.ignored(args{"id": "check-never", "method": "cancel"})
		}),
		rule("malformed", sectionFrames, "a line that is not JSON ends the connection", func(t *trial) {
			t.peer.sendRaw([]byte("this is no frame\n"))
			t.ends(t.peer, "a line that is no JSON ends the connection")
		}).apart(),
		rule("long-frame", sectionFrames, "a line of more than 16 MiB ends the connection", func(t *trial) {
			t.peer.silence("check-long", t.clause.Name)
			t.peer.sendLong(fmt.Sprintf(`{"id":"check-long","method":"check/unknown","token":%q,"data":"`, t.peer.token), "\"}\n", wire.MaxFrame)
			t.ends(t.peer, "a line of more than 16 MiB ends the connection")
		}).apart(),
	}
}

func ending() []clause {
	return []clause{
		rule("end-of-input", sectionEnding, "it exits when its input ends, within its budget", func(t *trial) {
			if t.known.mode != "" {
				t.slow() // what is in flight does not hold it up
			}
			t.want(!errors.Is(t.peer.end(t.Ending), program.ErrKilled), "it must exit when its input ends, and has not within %v", t.Ending)
		}).apart(),
		rule("exit-code", sectionEnding, "it exits with 0 when nothing is left of the session", func(t *trial) {
			err := t.peer.end(t.Ending)
			t.want(err == nil || errors.Is(err, program.ErrKilled), "another exit code than 0 says that something of the session is left, and there was nothing: %v", err)
		}).apart(),
		rule("workspace-removed", sectionInitialize, "with remove_workspace_on_exit the root goes when it ends", func(t *trial) {
			p := t.open()
			t.peer = p
			in := t.on(p).ask("initialize", p.binding().with("remove_workspace_on_exit", true))
			t.want(in.failed == "", "initialize with remove_workspace_on_exit failed: %s", in.failed)
			t.needsHere()
			t.want(p.rootIsHere(), "the root must be there before the end")
			_ = p.end(t.Ending)
			t.want(!p.rootIsHere(), "remove_workspace_on_exit was asked for, and the root is still there after the exit")
		}).unprepared(),
		rule("processes-end", sectionEnding, "no process is left when it has exited", func(t *trial) {
			mark := t.mark()
			t.startMarked(mark)
			t.visible(mark)
			_ = t.peer.end(t.Ending)
			left := running(mark)
			t.want(len(left) == 0, "its processes must end with it, but these are left: %v", left)
		}).apart(),
		rule(clauseStreams, sectionEnding, "nobody holds its standard streams when it has exited", func(t *trial) {
			if t.known.mode != "" {
				t.start(args{"command": "sleep 300"})
			}
			_ = t.peer.end(t.Ending) // who holds them is noted
		}).apart(),
	}
}

// driveOrdinary is an everyday conversation: whatever is wrong shows by itself.
func driveOrdinary(t *trial) {
	t.ask("check/unknown", args{})
	t.ask("process/list", args{})
	t.execute("list_files", args{}, "")
	t.alive()
}

// alive asks twice for what every adapter answers, so that what the adapter should
// not have sent before has come too.
func (t *trial) alive() {
	for range 2 {
		t.ask("check/unknown", args{})
	}
}

// ignored sends a frame that must have no effect and no reply.
func (t *trial) ignored(f args) {
	id, _ := f["id"].(string)
	t.peer.silence(id, t.clause.Name)
	t.peer.send(f)
	t.alive()
}

func driveUnknownMembers(t *trial) {
	plain := t.ask("initialize", t.peer.binding())
	w := t.peer.expect("check-members", "initialize")
	t.peer.send(args{"id": "check-members", "method": "initialize", "check_unknown": args{"x": []int{1}},
		"data": t.peer.binding().with("check_unknown", true)})
	r := t.await(w)
	t.want(r.failed == plain.failed, "members that are not known must be ignored, but they made it say %q", r.failed)
}

func driveMissingID(t *trial) {
	t.peer.drainNameless()
	t.peer.send(args{"method": "process/list", "data": args{}})
	timer := time.NewTimer(t.Patience)
	defer timer.Stop()
	select {
	case r := <-t.peer.nameless:
		t.want(r.failed != "", "a request without an id must be an error")
	case <-t.peer.ended:
		t.broken("a request without an id must be answered with an error; it closed its output")
	case <-timer.C:
		t.broken("a request without an id must be answered with an error; nothing came in %v", t.Patience)
	}
}

func (p *peer) drainNameless() {
	for {
		select {
		case <-p.nameless:
		default:
			return
		}
	}
}

// slow is a request that takes its time, in flight.
func (t *trial) slow() *waiting {
	if t.known.mode == "" {
		t.notOffered("it has nothing that takes its time: no commands")
	}
	return t.sendTool("bash", args{"command": t.marked("sleep 300", t.mark())}, t.known.mode)
}

func driveDuplicateID(t *trial) {
	w := t.slow()
	t.peer.again(w) // both replies come with one id
	t.peer.send(args{"id": w.id, "method": "execute", "data": t.call("list_files", args{}, "")})
	r := t.await(w)
	t.want(r.failed != "", "a second request with an id that is in flight must be an error")
	t.peer.cancel(w.id)
}

// again lets a request have one more reply than it has.
func (p *peer) again(w *waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.left++
	p.pending[w.id] = w
}

func driveConcurrent(t *trial) {
	const many, rounds = 20, 3 // on a busy machine the first may overtake the command
	w := t.slow()
	for range rounds {
		var quick []*waiting
		for range many {
			quick = append(quick, t.peer.request("check/unknown", args{}))
		}
		quick = append(quick, t.sendTool("list_files", args{}, ""))
		for _, q := range quick {
			t.await(q)
		}
	}
	select {
	case <-w.replies:
		t.broken("a command of 300 s must still run when quick requests behind it are answered")
	default:
	}
	t.peer.cancel(w.id)
}

func driveCancel(t *trial) {
	w := t.slow()
	t.alive()
	t.peer.cancel(w.id)
	t.await(w)
}

func driveCancelSilent(t *trial) {
	w := t.slow()
	t.peer.cancel(w.id)
	if t.awaited(w) == nil {
		t.notDriven(clauseCancel)
	}
	t.alive()
}

// awaited waits for a reply that may not come, and gives nil when it did not.
func (t *trial) awaited(w *waiting) *reply {
	timer := time.NewTimer(t.Patience)
	defer timer.Stop()
	select {
	case r := <-w.replies:
		return &r
	case <-timer.C:
	case <-t.peer.ended:
	case <-t.ctx.Done():
	}
	return nil
}

func driveCancelEnds(t *trial) {
	if t.known.mode == "" {
		t.notOffered("it runs no commands")
	}
	mark := t.mark()
	w := t.sendTool("bash", args{"command": t.marked("sleep 300", mark)}, t.known.mode)
	t.visible(mark)
	t.peer.cancel(w.id)
	if t.awaited(w) == nil {
		t.notDriven(clauseCancel)
	}
	left := running(mark)
	t.want(len(left) == 0, "the reply must come when the command has ended, but it still runs: %s", strings.Join(left, ", "))
}
