package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestFramesKeepTheirMembers(t *testing.T) {
	frames := []Frame{
		{ID: "7", Method: "execute", Token: strings.Repeat("ab", 32), Data: json.RawMessage(`{"call":{"name":"x","arguments":"{}"}}`)},
		{ID: "7", Data: json.RawMessage(`[1,2,{"a":"b\"c"}]`)},
		{ID: "7", Error: "no \"such\" file\n", Detail: &ErrorDetail{Kind: tool.Denied, Hint: "h", Path: "p", Retryable: true}},
		{ID: "c1", ParentID: "7", Method: "tool", Data: json.RawMessage(`{}`)},
		{Method: "process", Data: json.RawMessage(`{"Type":"started"}`)},
		{ID: "8", Data: json.RawMessage(`true`), Body: 1 << 40},
		{ID: "8", Method: "body", Raw: 5},
		{ID: "é\u2028\x00", Error: "x"},
	}
	var stream bytes.Buffer
	w := NewWriter(&stream)
	for _, f := range frames {
		if err := w.Write(f, bytes.Repeat([]byte("\n"), f.Raw)); err != nil {
			t.Fatal(err)
		}
	}
	for name, src := range map[string]io.Reader{
		"whole":        bytes.NewReader(stream.Bytes()),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream.Bytes())),
		"with the end": iotest.DataErrReader(bytes.NewReader(stream.Bytes())),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(src)
			r.Bulk(true)
			for i, want := range frames {
				got, err := r.Read()
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("frame %d: %+v, want %+v", i, got, want)
				}
				if i%2 == 0 && got.Raw > 1 { // the rest is dropped by the next Read
					if err := r.ReadRaw(make([]byte, got.Raw-1)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := r.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

func TestParseFrame(t *testing.T) {
	for _, test := range []struct {
		line string
		bulk bool
		want rawFrame // members is not compared
		ok   bool
	}{
		{line: `{"id":"1","error":null,"data":null,"parent_id":null,"detail":null}`, ok: true, want: rawFrame{id: []byte("1")}},
		{line: " {\t\"id\" : \"1\" , \"unknown\":[{}] }\r", ok: true, want: rawFrame{id: []byte("1")}},
		{line: `{"\u0069d":"\u0031"}`, ok: true, want: rawFrame{id: []byte("1")}},
		{line: `{"ID":"1"}`, ok: true},
		{line: `{"id":"1","raw":"many","body":{}}`, ok: true, want: rawFrame{id: []byte("1")}},
		{line: `{"id":"1","raw":7,"body":8}`, ok: true, bulk: true, want: rawFrame{id: []byte("1"), raw: 7, body: 8}},
		{line: `{"id":"1","raw":1048576}`, ok: true, bulk: true, want: rawFrame{id: []byte("1"), raw: MaxRaw}},
		{line: `{"id":"1","raw":1048577}`, bulk: true},
		{line: `{"id":"1","raw":-1}`, bulk: true},
		{line: `{"id":"1","raw":1.5}`, bulk: true},
		{line: `{"id":"1","body":9007199254740993}`, bulk: true},
		{line: `{"id":7}`}, {line: `{"id":"1","method":{}}`}, {line: `{"id":"1","error":{}}`}, {line: `{"token":1}`},
		{line: `{"id":"1","id":"2"}`}, {line: `{"id":"1","data":{},"data":{}}`},
		{line: `{"id":"1","data":{"a" 1}}`}, {line: `{"id":"1"} {}`}, {line: ``}, {line: `[]`}, {line: `Welcome!`},
		{line: "{\"id\":\"\xff\"}"},
	} {
		var f rawFrame
		err := f.parse([]byte(test.line), test.bulk)
		if (err == nil) != test.ok {
			t.Errorf("%q: %v", test.line, err)
		}
		f.members = 0
		if test.ok && !reflect.DeepEqual(f, test.want) {
			t.Errorf("%q: %+v, want %+v", test.line, f, test.want)
		}
	}
}

func TestReaderBounds(t *testing.T) {
	fill := func(n int) string {
		return `{"id":"1","data":"` + strings.Repeat("x", n-len(`{"id":"1","data":""}`)-1) + "\"}\n"
	}
	tests := []struct {
		name, in string
		fails    bool
	}{
		{"just short enough", fill(MaxFrame), false},
		{"a byte too long", fill(MaxFrame + 1), true},
		{"without an end", strings.Repeat("x", MaxFrame+1), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := NewReader(io.MultiReader(strings.NewReader(test.in), iotest.ErrReader(errors.New("read on"))))
			r.quote = true
			_, err := r.Read()
			var bad *FrameError
			if errors.As(err, &bad) != test.fails {
				t.Fatal(err)
			}
			if test.fails && len(bad.Head) != quotedHead {
				t.Errorf("the error quotes %d bytes", len(bad.Head))
			}
			if len(r.buf) > MaxFrame {
				t.Errorf("the buffer has %d bytes", len(r.buf))
			}
		})
	}
}

func TestReaderTakeAndShrink(t *testing.T) {
	big := `"` + strings.Repeat("b", 3<<20) + `"`
	in := `{"id":"1","data":` + big + "}\n" + `{"id":"2","data":"small"}` + "\n" + `{"id":"3","error":` + big + "}\n" + `{"id":"4"}` + "\n"
	r := NewReader(strings.NewReader(in))
	var kept [][]byte
	for range 4 {
		f, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, r.take(f.data))
	}
	if string(kept[0]) != big || string(kept[1]) != `"small"` {
		t.Error("data that was taken has changed")
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if len(r.buf) > takeSize {
		t.Errorf("an idle reader holds %d bytes", len(r.buf))
	}
}

func TestReaderEnds(t *testing.T) {
	for in, want := range map[string]error{
		"":                                     io.EOF,
		`{"id":"1"}`:                           io.ErrUnexpectedEOF,
		"{\"id\":\"1\",\"raw\":3}\nab":         io.ErrUnexpectedEOF,
		"{\"id\":\"1\",\"raw\":3}\nabc{\"id\"": io.ErrUnexpectedEOF,
	} {
		r := NewReader(strings.NewReader(in))
		r.Bulk(true)
		var err error
		for err == nil {
			_, err = r.Read()
		}
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
	if _, err := NewReader(stuck{}).Read(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that gives nothing: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestWriterRefusesBeforeItWrites(t *testing.T) {
	var stream bytes.Buffer
	w := NewWriter(&stream)
	room := MaxFrame - len(`{"id":"1","data":""}`) - 1
	quoted := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	if err := w.Write(Frame{ID: "1", Data: quoted(room)}, nil); err != nil || stream.Len() != MaxFrame {
		t.Fatalf("a frame of %d bytes: %v", stream.Len(), err)
	}
	stream.Reset()
	for name, err := range map[string]error{
		"too long":   w.Write(Frame{ID: "1", Data: quoted(room + 1)}, nil),
		"not JSON":   w.Write(Frame{ID: "1", Data: json.RawMessage("{\n")}, nil),
		"raw":        w.Write(Frame{ID: "1"}, make([]byte, MaxRaw+1)),
		"not a type": w.send(t.Context(), &Frame{ID: "1"}, make(chan int), nil),
	} {
		if err == nil || stream.Len() > 0 {
			t.Errorf("%s: %v, %d bytes written", name, err, stream.Len())
		}
	}
	if err := w.Write(Frame{ID: "1", Data: json.RawMessage("{\n \"a\": [1,\n2]}")}, nil); err != nil {
		t.Fatal(err)
	}
	if got := stream.String(); got != "{\"id\":\"1\",\"data\":{\"a\":[1,2]}}\n" {
		t.Errorf("data of several lines became %q", got)
	}
}

func TestWriterTellsWhatWasNotSent(t *testing.T) {
	for limit := range 25 {
		w := NewWriter(&limited{left: limit})
		err := w.send(t.Context(), &Frame{ID: "1", Error: "x"}, nil, nil)
		if limit >= len(`{"id":"1","error":"x"}`+"\n") {
			if err != nil {
				t.Errorf("%d bytes: %v", limit, err)
			}
			continue
		}
		if !errors.Is(err, ErrNotSent) || !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%d bytes: %v", limit, err)
		}
		if err := w.send(t.Context(), &Frame{ID: "2"}, nil, nil); !errors.Is(err, ErrNotSent) || !w.broken() {
			t.Errorf("after a failure: %v", err)
		}
	}
	w := NewWriter(&limited{left: 400_000})
	err := w.send(t.Context(), &Frame{ID: "1", Raw: MaxRaw}, nil, make([]byte, MaxRaw))
	if err == nil || errors.Is(err, ErrNotSent) {
		t.Errorf("a frame that went out before its raw bytes failed: %v", err)
	}
}

// limited is a writer that fails after so many bytes.
type limited struct{ left int }

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func TestBanner(t *testing.T) {
	const reply = "{\"id\":\"1\",\"data\":{}}\n"
	long := strings.Repeat("-", MaxBanner/2)
	for _, test := range []struct {
		name, mark, in string
		fails          string // a part of the error; empty for success
	}{
		{"nothing printed", "", reply, ""},
		{"lines", "", "Welcome!\n\n{}\n{\"motd\":1}\n[1]\r\n" + reply, ""},
		{"a lot", "", long + "\n" + reply, ""},
		{"too much", "", long + "\n" + long + "\n" + reply, "64 KiB"},
		{"only text", "", "sh: caisson: not found\n", "sh: caisson: not found"},
		{"an unended line", "", "permission denied", "permission denied"},
		{"nothing", "", "", "EOF"},
		{"garbage later", "", reply + "oops\n", "oops"},
		{"a mark", "M4rk", "M4rk\n" + reply, ""},
		{"a mark in a line", "M4rk", "Last login: \x1b[0mM4M4rk\r\n" + reply, ""},
		{"a frame before the mark", "M4rk", "{\"id\":\"1\",\"error\":\"early\"}\nM4rk\n" + reply, ""},
		{"a lot before the mark", "M4rk", long + "M4rk\n" + reply, ""},
		{"far more before the mark", "M4rk", strings.Repeat(long, 30) + "M4rk\n" + reply, ""},
		{"too much before the mark", "M4rk", strings.Repeat(long, 33) + "M4rk\n" + reply, "1 MiB"},
		{"text after the mark", "M4rk", "M4rk!\n" + reply, "end of its line"},
		{"no mark", "M4rk", "login: M4r", "login: M4r"},
		{"nothing, with a mark", "M4rk", "", "EOF"},
		{"garbage after the mark", "M4rk", "M4rk\nWelcome!\n" + reply, "Welcome!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
				r := NewReader(src)
				r.quote = true
				f, err := firstFrame(r, test.mark)
				if err == nil {
					if string(f.id) != "1" || f.err != nil {
						t.Fatalf("the first frame is %+v", f)
					}
					if _, err = r.next(); errors.Is(err, io.EOF) {
						err = nil
					}
				}
				switch {
				case test.fails == "" && err != nil:
					t.Error(err)
				case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
					t.Errorf("%v, want %q in it", err, test.fails)
				}
				if len(r.buf) > 2*MaxBanner {
					t.Errorf("the buffer has %d bytes", len(r.buf))
				}
			}
		})
	}
}

func firstFrame(r *Reader, mark string) (*rawFrame, error) {
	if mark == "" {
		return r.first()
	}
	if err := r.skipTo(mark); err != nil {
		return nil, err
	}
	return r.next()
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"id\":\"1\",\"method\":\"execute\",\"token\":\"t\",\"data\":{\"call\":{\"name\":\"bash\",\"arguments\":\"{}\"}}}\n"), true)
	f.Add([]byte("{\"id\":\"1\",\"data\":{},\"body\":3}\n{\"id\":\"1\",\"method\":\"body\",\"raw\":3}\nabc{\"id\":\"2\"}\n"), true)
	f.Add([]byte("{\"id\":\"1\",\"raw\":3}\n{\"id\":\"2\"}\n"), false)
	f.Add([]byte("{\"id\":\"1\",\"error\":\"x\",\"detail\":{\"kind\":\"denied\"}}\n"), true)
	f.Add([]byte("motd\r\n{\"id\":\"\",\"method\":\"process\",\"data\":{}}\n\n"), true)
	f.Fuzz(func(t *testing.T, in []byte, bulk bool) {
		r := NewReader(iotest.HalfReader(bytes.NewReader(in)))
		r.Bulk(bulk)
		for {
			frame, err := r.Read()
			if err != nil {
				return
			}
			raw := make([]byte, frame.Raw)
			if err := r.ReadRaw(raw); err != nil {
				return
			}
			// What was read can be written, and means the same again.
			var out bytes.Buffer
			if err := NewWriter(&out).Write(frame, raw); err != nil {
				t.Fatalf("%+v: %v", frame, err)
			}
			again := NewReader(&out)
			again.Bulk(true)
			got, err := again.Read()
			if err != nil {
				t.Fatalf("%+v: %v", frame, err)
			}
			got.Data, frame.Data = compact(t, got.Data), compact(t, frame.Data)
			if !reflect.DeepEqual(got, frame) && frame.Error != "" == (frame.Detail != nil) {
				t.Fatalf("%+v became %+v", frame, got)
			}
		}
	})
}

func compact(t *testing.T, data json.RawMessage) json.RawMessage {
	if data == nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatalf("data that is not JSON: %q", data)
	}
	return b.Bytes()
}
