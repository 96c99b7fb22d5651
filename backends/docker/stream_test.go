package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func frame(stream byte, payload string) []byte {
	header := make([]byte, frameHeader, frameHeader+len(payload))
	header[0] = stream
	binary.BigEndian.PutUint32(header[4:], uint32(len(payload)))
	return append(header, payload...)
}

// streamOf is a stream whose daemon sends data and then ends.
func streamOf(t *testing.T, data []byte, code int, ended bool) *execStream {
	t.Helper()
	near, far := net.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer far.Close()
		_, _ = far.Write(data) // the reader may stop early
	}()
	s := newExecStream(near, bufio.NewReader(near), func(context.Context) (int, bool) { return code, ended })
	t.Cleanup(func() { s.Close(); <-written })
	return s
}

func TestStream(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name  string
		data  []byte
		code  int
		alive bool
		want  string
		fails string
	}{
		{name: "nothing"},
		{name: "stdout", data: append(frame(1, "one "), frame(1, "two")...), want: "one two"},
		{name: "a long frame", data: frame(1, long), want: long},
		{name: "empty frames", data: append(frame(1, ""), frame(1, "x")...), want: "x"},
		{name: "stderr stands between", data: append(append(frame(1, "a"), frame(2, "noise")...), frame(1, "b")...), want: "ab"},
		{name: "stderr tells why", data: append(frame(1, "a"), frame(2, "no such\nthing\n")...), code: 3, want: "a", fails: "exited with 3: no such thing"},
		{name: "failed in silence", code: 126, fails: "exited with 126"},
		{name: "still running", code: 0, alive: true},
		{name: "the daemon's own word", data: frame(3, "broken"), code: 1, fails: "broken"},
		{name: "an unknown stream", data: frame(9, "?"), fails: "unknown stream 9"},
		{name: "cut in a header", data: frame(1, "abc")[:5], fails: "unexpected EOF"},
		{name: "cut in a frame", data: frame(1, "abc")[:10], want: "ab"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := io.ReadAll(streamOf(t, test.data, test.code, !test.alive))
			if string(got) != test.want {
				t.Errorf("read %.40q, want %.40q", got, test.want)
			}
			switch {
			case test.fails == "" && err != nil:
				t.Errorf("got the error %v", err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("got the error %v, want %q", err, test.fails)
			}
		})
	}
}

// What a container's runtime prints in place of the command is no fault of the program
// there: it is tried again, and told with what to do.
func TestStreamRefused(t *testing.T) {
	for said, refused := range map[string]bool{
		"OCI runtime exec failed: exec failed: unable to start container process: read init-p: connection reset by peer: unknown\r\n": true,
		"cannot exec in a stopped state: unknown\r\n": true,
		"MARK\nOCI runtime exec failed\n":             false,
		"Segmentation fault\n":                        false,
	} {
		s := streamOf(t, frame(1, said), 126, true)
		reached := false
		s.mark, s.reached = "MARK", func() { reached = true }
		got, err := io.ReadAll(s)
		if string(got) != said || reached != strings.HasPrefix(said, "MARK") {
			t.Errorf("%q: read %q, reached %t", said, got, reached)
		}
		e, ok := errors.AsType[*tool.Error](err)
		if ok != refused || ok && (!e.Retryable || !strings.Contains(e.Hint, "pids_limit")) {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestStreamKeepsLittleOfStderr(t *testing.T) {
	data := frame(2, strings.Repeat("early ", 100_000)+"the end")
	s := streamOf(t, data, 1, true)
	_, err := io.ReadAll(s)
	if err == nil || !strings.HasSuffix(err.Error(), "the end") || len(err.Error()) > 2*maxStderrBytes {
		t.Errorf("got %.100v", err)
	}
}

func TestStreamCloseEndsRead(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	s := newExecStream(near, bufio.NewReader(near), func(context.Context) (int, bool) { return 0, true })
	read := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 10))
		read <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil {
		t.Error("the read did not fail")
	}
}

func FuzzStream(f *testing.F) {
	f.Add(append(frame(1, "abc"), frame(2, "x")...))
	f.Add(frame(1, "abc")[:4])
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newExecStream(nil, bufio.NewReader(bytes.NewReader(data)), func(context.Context) (int, bool) { return 0, true })
		got, err := io.ReadAll(s)
		if err == nil && len(got) > len(data) {
			t.Errorf("%d bytes came out of %d", len(got), len(data))
		}
	})
}
