//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// publication is an artifact that was acknowledged.
type publication struct {
	uri, id, content string
}

// publish makes an artifact of a file whose content is certain.
func (a *agent) publish(ctx context.Context, r *rand.Rand) error {
	name, f := a.named(r)
	if must, _ := f.there(); !must || len(f.may) != 1 {
		return nil
	}
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	result, err := a.service.ArtifactPublish(call, protocol.ArtifactPublishParams{SessionID: a.sessionID(), Path: name})
	e, err := a.judge("artifact/publish", began, err)
	if err != nil || e != done {
		return err
	}
	sum := sha256.Sum256([]byte(f.may[0]))
	if want := "sha256:" + hex.EncodeToString(sum[:]); result.Artifact.ID != want || result.Artifact.Size != int64(len(f.may[0])) {
		return fmt.Errorf("%s was published as %s of %d bytes, and holds %s", name, result.Artifact.ID, result.Artifact.Size, head(f.may[0]))
	}
	a.published = append(a.published, publication{result.Artifact.URI, result.Artifact.ID, f.may[0]})
	a.tally.count("artifacts")
	return nil
}

// recall reads an artifact again, and sometimes deletes it.
func (a *agent) recall(ctx context.Context, r *rand.Rand) error {
	if len(a.published) == 0 {
		return nil
	}
	i := r.IntN(len(a.published))
	if err := a.readArtifact(ctx, a.published[i]); err != nil || r.IntN(4) > 0 {
		return err
	}
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	uri := a.published[i].uri
	err := a.service.ArtifactDelete(call, protocol.ArtifactDeleteParams{URI: uri})
	// A file that was published twice as it was is one publication.
	a.published = slices.DeleteFunc(a.published, func(p publication) bool { return p.uri == uri })
	_, err = a.judge("artifact/delete", began, err)
	return err
}

func (a *agent) readArtifact(ctx context.Context, p publication) error {
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	result, err := a.service.ArtifactRead(call, protocol.ArtifactReadParams{ID: p.id})
	e, err := a.judge("artifact/read", began, err)
	if err != nil || e != done {
		return err
	}
	if !bytes.Equal(result.Data, []byte(p.content)) || !result.EOF {
		return fmt.Errorf("the artifact %s holds %s, and was %s", p.uri, head(string(result.Data)), head(p.content))
	}
	return nil
}

// busy tries to open the session in another service, which must say who has it.
func (a *agent) busy(ctx context.Context, _ *rand.Rand) error {
	other := a.in(1 - a.service.slot)
	if other == nil {
		return nil
	}
	call, cancel := limited(ctx)
	defer cancel()
	_, err := other.SessionOpen(call, protocol.SessionOpenParams{SessionID: a.sessionID(), Workspace: nil})
	var e *protocol.Error
	switch {
	case err == nil && a.service.gone():
		// It was free by then.
		a.service = other
		return nil
	case err == nil:
		return errors.New("two services have the session")
	case other.gone():
		return nil
	case errors.As(err, &e) && (e.Kind() == protocol.KindSessionBusy || e.Kind() == protocol.KindOverloaded):
		a.tally.count("busy")
		return nil
	}
	if a.service.gone() {
		return nil // whatever it was that was tried on a session without an owner
	}
	return fmt.Errorf("another service says %s", explain(err))
}

// fork makes a session like this one, works in it and deletes it.
func (a *agent) fork(ctx context.Context, r *rand.Rand) error {
	a.calls++
	id := fmt.Sprintf("%s-fork%d", a.sessionID(), a.calls)
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	forked, err := a.service.SessionFork(call, protocol.SessionForkParams{SessionID: a.sessionID(), NewSessionID: id})
	a.strays = append(a.strays, id)
	e, err := a.judge("session/fork", began, err)
	if err != nil || e != done {
		return err
	}
	if own := a.profile != shared; own == (forked.Session.EnvironmentID == a.session.EnvironmentID) {
		return fmt.Errorf("a fork of a session of %s has the environment %s, its parent %s", a.profile, forked.Session.EnvironmentID, a.session.EnvironmentID)
	}
	content, name := a.content(r), path.Join(a.subdir, "of-a-fork")
	_, err = a.service.FileWrite(call, protocol.FileWriteParams{SessionID: id, Path: name, Data: []byte(content)})
	if e, err = a.judge("fs/writeFile of the fork", began, err); err != nil || e != done {
		return err
	}
	result, err := a.service.ToolCall(call, protocol.ToolCallParams{
		SessionID: id, Name: "bash", Arguments: protocol.RawObject(fmt.Sprintf(`{"command": "head -n 1 %s && rm %s"}`, name, name)),
	})
	if e, err = a.judge("bash in the fork", began, err); err != nil || e != done {
		return err
	}
	if err := ran(result, 0, fmt.Sprintf("%s by %s\n", tag, a.sessionID())); err != nil {
		return err
	}
	a.tally.count("forks")
	return a.deleteStrays(ctx)
}

// deleteStrays deletes the forks that there are, or may be.
func (a *agent) deleteStrays(ctx context.Context) error {
	for len(a.strays) > 0 {
		if gone, err := a.deleted(ctx, a.strays[0]); err != nil || !gone {
			return err
		}
		a.strays = a.strays[1:]
	}
	return nil
}

// deleted deletes a session, and says whether it is certainly gone.
func (a *agent) deleted(ctx context.Context, id string) (bool, error) {
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	_, err := a.service.SessionDelete(call, protocol.SessionDeleteParams{SessionID: id})
	a.note("delete %s: %v", id, err)
	var e *protocol.Error
	if errors.As(err, &e) {
		switch {
		case e.Kind() == protocol.KindSessionNotFound:
			return true, nil
		case e.Kind() == protocol.KindSessionBusy:
			// A service that is ending has not let go of it yet, or one that another
			// agent works with has a fork of ours that it may keep a while.
			return false, nil
		}
	}
	effect, err := a.judge("session/delete "+id, began, err)
	return effect == done, err
}

// close closes the session, which comes back with its files and without
// processes. One whose environment goes with it is deleted.
func (a *agent) close(ctx context.Context, r *rand.Rand) error {
	if a.profile == shared {
		return nil // with the last one everything goes
	}
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	closed, err := a.service.SessionClose(call, protocol.SessionParams{SessionID: a.sessionID()})
	cause := err
	e, err := a.judge("session/close", began, cause)
	if err != nil {
		return err
	}
	a.note("close %s %d: %s", a.sessionID(), e, explain(cause))
	if e == nothing {
		return nil
	}
	if e == done && closed.Session.State != protocol.SessionClosed {
		return fmt.Errorf("it was closed and is %s", closed.Session.State)
	}
	a.tally.count("closed")
	a.forgetProcesses()
	if a.profile == box {
		return a.delete(ctx, r)
	}
	a.held = false
	return nil
}

// forgetProcesses lets go of processes that may be ended. A list may still tell
// of them.
func (a *agent) forgetProcesses() {
	for _, p := range a.processes {
		a.forgotten[p.id] = true
	}
	a.processes = nil
}

// delete deletes the session, whose successor is another one.
func (a *agent) delete(ctx context.Context, r *rand.Rand) error {
	const attempts = 20
	for range attempts {
		a.forgetProcesses()
		gone, err := a.deleted(ctx, a.sessionID())
		if err != nil {
			return err
		}
		if gone {
			a.tally.count("deleted")
			a.held, a.exists = false, false
			a.generation++
			a.container.Store(nil)
			switch a.profile {
			case box, keep:
				a.empty()
			case shared:
				// Whether the others keep the files is theirs to say.
				a.empty()
				a.subdir = fmt.Sprintf("s%02d-%d", a.index, a.generation)
			}
			return nil
		}
		if err := a.waitForOwner(ctx); err != nil {
			return err
		}
		if a.service, err = a.pick(ctx, r.IntN(slots)); err != nil {
			return err
		}
	}
	return fmt.Errorf("it was tried %d times to delete %s", attempts, a.sessionID())
}
