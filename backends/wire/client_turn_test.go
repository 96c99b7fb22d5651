package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// dialBlocking is a client over a socket of [Blocking], which has been initialized, and
// its peer.
func dialBlocking(t *testing.T, o ClientOptions) (*Client, *script) {
	t.Helper()
	host, worker := socketPair(t)
	near, err := Blocking(host)
	if err != nil {
		t.Fatal(err)
	}
	o.Token, o.Blocks = testToken, Blocks(near)
	c, s := NewClient(near, o), newScript(t, worker)
	t.Cleanup(func() { c.Close() })
	begun := make(chan error, 1)
	go func() { _, err := c.Initialize(t.Context(), binding); begun <- err }()
	s.hears(`"id":"1","method":"initialize"`)
	s.say(`{"id":"1","data":{"version":4,"root":"/workspace","capabilities":["` + CapBulk + `"]}}`)
	if err := receive(t, begun); err != nil {
		t.Fatal(err)
	}
	return c, s
}

// asked is the outcome of a call.
type asked struct {
	Reply
	err error
}

// prompt makes a call whose caller may read.
func prompt(ctx context.Context, c *Client) <-chan asked {
	result := make(chan asked, 1)
	go func() {
		r, err := c.Do(ctx, ClientRequest{Method: MethodStat, Prompt: true})
		result <- asked{r, err}
	}()
	return result
}

// answered makes a call whose caller may read, and answers it.
func answered(t *testing.T, c *Client, s *script, id int) {
	t.Helper()
	result := prompt(t.Context(), c)
	s.hears(fmt.Sprintf(`"id":"%d","method":"fs/stat"`, id))
	s.say(fmt.Sprintf(`{"id":"%d","data":"%d"}`, id, id))
	if r := receive(t, result); r.err != nil || string(r.Data) != fmt.Sprintf(`"%d"`, id) {
		t.Fatal(string(r.Data), r.err)
	}
}

// callersRead is dialBlocking when the client's own goroutine rests, and goes on to
// until there are calls that do not read.
func callersRead(t *testing.T, o ClientOptions) (*Client, *script) {
	t.Helper()
	c, s := dialBlocking(t, o)
	c.mu.Lock()
	c.turn.time = time.Hour
	c.mu.Unlock()
	answered(t, c, s, 2)
	until(t, c, "the goroutine of its own rests", func(t *turn) bool { return !t.taken })
	return c, s
}

// until waits until the turn is as wanted.
func until(t *testing.T, c *Client, what string, is func(*turn) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(soon); ; {
		c.mu.Lock()
		as := is(&c.turn)
		c.mu.Unlock()
		if as {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}

// reading makes a call whose caller reads.
func reading(ctx context.Context, t *testing.T, c *Client, s *script, id int) <-chan asked {
	t.Helper()
	result := prompt(ctx, c)
	s.hears(fmt.Sprintf(`"id":"%d"`, id))
	until(t, c, "the caller reads", func(t *turn) bool { return t.taken })
	return result
}

func TestCallersRead(t *testing.T) {
	event := `{"method":"process","data":{"type":"updated","process":{"process_id":"p"}}}`
	t.Run("what comes for others", func(t *testing.T) {
		events := make(chan tool.ProcessEvent, 1)
		c, s := callersRead(t, ClientOptions{OnEvent: func(e tool.ProcessEvent) { events <- e }})
		first := reading(t.Context(), t, c, s, 3)
		other := make(chan asked, 1)
		go func() { r, err := c.Call(t.Context(), "other", nil, nil); other <- asked{r, err} }()
		s.hears(`"id":"4"`)
		s.say(event, `{"id":"4","data":"other"}`)
		if r := receive(t, other); r.err != nil || string(r.Data) != `"other"` {
			t.Error(string(r.Data), r.err)
		}
		receive(t, events)
		s.say(`{"id":"3","data":"first"}`)
		if r := receive(t, first); r.err != nil || string(r.Data) != `"first"` {
			t.Error(string(r.Data), r.err)
		}
	})
	t.Run("others wait on", func(t *testing.T) {
		c, s := callersRead(t, ClientOptions{})
		first := reading(t.Context(), t, c, s, 3)
		second := prompt(t.Context(), c)
		s.hears(`"id":"4"`)
		s.say(`{"id":"3","data":"first"}`)
		if r := receive(t, first); r.err != nil {
			t.Fatal(r.err)
		}
		s.say(`{"id":"4","data":"second"}`)
		if r := receive(t, second); r.err != nil || string(r.Data) != `"second"` {
			t.Error(string(r.Data), r.err)
		}
	})
	t.Run("what came with the reply", func(t *testing.T) {
		events := make(chan tool.ProcessEvent, 1)
		c, s := callersRead(t, ClientOptions{OnEvent: func(e tool.ProcessEvent) { events <- e }})
		result := reading(t.Context(), t, c, s, 3)
		s.say(`{"id":"3","data":"3"}` + "\n" + event) // in one piece
		if r := receive(t, result); r.err != nil {
			t.Error(r.err)
		}
		receive(t, events)
	})
	t.Run("a body", func(t *testing.T) {
		c, s := callersRead(t, ClientOptions{})
		result := reading(t.Context(), t, c, s, 3)
		size := BodyWindow + MaxRaw
		s.say(fmt.Sprintf(`{"id":"3","data":null,"body":%d}`, size))
		for sent := 0; sent < size; sent += MaxRaw {
			s.say(fmt.Sprintf(`{"id":"3","method":"body","raw":%d}`, MaxRaw))
			if _, err := s.conn.Write(make([]byte, MaxRaw)); err != nil {
				t.Fatal(err)
			}
		}
		if r := receive(t, result); r.err != nil || len(r.Body) != size {
			t.Error(len(r.Body), r.err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		c, s := callersRead(t, ClientOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		result := reading(ctx, t, c, s, 3)
		cancel()
		s.hears(`"id":"3","method":"cancel"`)
		s.say(`{"id":"3","error":"cancelled"}`)
		wantKind(t, receive(t, result).err, tool.Cancelled)
		answered(t, c, s, 4)
	})
	t.Run("cancelled, and no answer", func(t *testing.T) {
		c, s := callersRead(t, ClientOptions{CancelGrace: 10 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		result := reading(ctx, t, c, s, 3)
		cancel()
		wantKind(t, receive(t, result).err, tool.OutcomeUnknown)
		if !errors.Is(c.Err(), errNoReply) {
			t.Error(c.Err())
		}
	})
	t.Run("the peer ends", func(t *testing.T) {
		c, s := callersRead(t, ClientOptions{})
		result := reading(t.Context(), t, c, s, 3)
		s.conn.Close()
		wantKind(t, receive(t, result).err, tool.OutcomeUnknown)
		if !errors.Is(c.Err(), io.EOF) {
			t.Error(c.Err())
		}
	})
	t.Run("closed", func(t *testing.T) {
		c, s := callersRead(t, ClientOptions{})
		result := reading(t.Context(), t, c, s, 3)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		if c.turn.taken {
			t.Error("Close returned while the caller reads")
		}
		c.mu.Unlock()
		wantKind(t, receive(t, result).err, tool.OutcomeUnknown)
	})
}

// TestRest has nobody read for a while, after which what came is read all the same.
func TestRest(t *testing.T) {
	events := make(chan tool.ProcessEvent, 1)
	c, s := dialBlocking(t, ClientOptions{OnEvent: func(e tool.ProcessEvent) { events <- e }})
	for id := 2; id < 102; id++ {
		answered(t, c, s, id)
	}
	s.say(`{"method":"process","data":{"type":"updated","process":{"process_id":"p"}}}`)
	receive(t, events)
	answered(t, c, s, 102)
	s.conn.Close()
	receive(t, c.Done())
	if !errors.Is(c.Err(), io.EOF) {
		t.Error(c.Err())
	}
}
