package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
)

// framed puts a header before a body.
func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }
func (nopWriter) Close() error                { return nil }

// reading makes a stream that reads the input and collects what is invalid.
func reading(t *testing.T, input io.Reader, problems *[]Problem) *Stream {
	t.Helper()
	s := New(io.NopCloser(input), nopWriter{}, Options{Invalid: func(p Problem, _ jsonrpc2.ID) error {
		*problems = append(*problems, p)
		return nil
	}})
	t.Cleanup(func() {
		s.Close()
		<-s.Done()
	})
	return s
}

// TestRead reads inputs to their end: each is some frames, what becomes of
// them, and the error at the end.
func TestRead(t *testing.T) {
	long := strings.Repeat(" ", MaxBody+1-len(ping)) + ping
	tests := map[string]struct {
		input    string
		methods  string // of the messages that come out
		problems []Problem
		end      error
	}{
		"nothing":                {"", "", nil, io.EOF},
		"one":                    {framed(ping), "ping", nil, io.EOF},
		"two":                    {framed(ping) + framed(ping), "ping ping", nil, io.EOF},
		"any case, bare newline": {"content-length:" + fmt.Sprint(len(ping)) + "\n\n" + ping, "ping", nil, io.EOF},
		"other fields":           {"Content-Type: x; y=z\r\n" + framed(ping), "ping", nil, io.EOF},
		"the same length twice":  {"Content-Length: 40\r\n" + framed(ping), "ping", nil, io.EOF},

		"bad JSON":           {framed(`{"jsonrpc":`) + framed(ping), "ping", []Problem{NotJSON}, io.EOF},
		"bad JSON in params": {framed(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a" 1}}`) + framed(ping), "ping", []Problem{NotJSON}, io.EOF},
		"unbalanced params":  {framed(`{"jsonrpc":"2.0","id":1,"method":"m","params":[1 2 }}`) + framed(ping), "ping", []Problem{NotJSON}, io.EOF},
		"two values":         {framed(ping + ping), "", []Problem{NotJSON}, io.EOF},
		"not UTF-8":          {framed("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"), "", []Problem{NotJSON}, io.EOF},
		"raw newline":        {framed("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}"), "", []Problem{NotJSON}, io.EOF},
		"too deep":           {framed(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), "", []Problem{NotJSON}, io.EOF},
		"empty body":         {framed("") + framed(ping), "ping", []Problem{NotJSON}, io.EOF},
		"a number":           {framed("42"), "", []Problem{NotMessage}, io.EOF},
		"null":               {framed("null"), "", []Problem{NotMessage}, io.EOF},
		"empty object":       {framed("{}"), "", []Problem{NotMessage}, io.EOF},
		"no version":         {framed(`{"id":1,"method":"m"}`), "", []Problem{NotMessage}, io.EOF},
		"other version":      {framed(`{"jsonrpc":"1.0","id":1,"method":"m"}`), "", []Problem{NotMessage}, io.EOF},
		"fractional id":      {framed(`{"jsonrpc":"2.0","id":1.5,"method":"m"}`), "", []Problem{NotMessage}, io.EOF},
		"null id":            {framed(`{"jsonrpc":"2.0","params":{"id":1},"method":"m","id":null}`) + framed(ping), "ping", []Problem{NotMessage}, io.EOF},
		"inner id":           {framed(`{"jsonrpc":"2.0","method":"m","params":{"id":null}}`), "m", nil, io.EOF},
		"half a pair":        {framed(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\ud83d"}}`) + framed(ping), "ping", []Problem{NotText}, io.EOF},
		"whole pair":         {framed(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\ud83d\ude00"}}`), "m", nil, io.EOF},
		"object id":          {framed(`{"jsonrpc":"2.0","id":{},"method":"m"}`), "", []Problem{NotMessage}, io.EOF},
		"method no string":   {framed(`{"jsonrpc":"2.0","id":1,"method":42}`), "", []Problem{NotMessage}, io.EOF},
		"result and error":   {framed(`{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`), "", []Problem{NotMessage}, io.EOF},
		"batch":              {framed("["+ping+"]") + framed(ping), "ping", []Problem{NotMessage}, io.EOF},
		"batch of nothing":   {framed("[]"), "", []Problem{NotMessage}, io.EOF},
		"too long":           {framed(long) + framed(ping), "ping", []Problem{TooLong}, io.EOF},

		// What a reader that does not drain its frames would take for a request.
		"inner frame": {framed(ping + strings.Repeat(" ", 100) + framed(ping)), "", []Problem{NotJSON}, io.EOF},

		"cut header":         {"Content-Le", "", nil, io.ErrUnexpectedEOF},
		"cut between":        {"Content-Length: 40\r\n\r\n", "", nil, io.ErrUnexpectedEOF},
		"cut body":           {framed(ping)[:40], "", nil, io.ErrUnexpectedEOF},
		"cut long body":      {framed(long)[:MaxBody/2], "", nil, io.ErrUnexpectedEOF},
		"no length":          {"Content-Type: x\r\n\r\n" + ping, "", nil, ErrHeader},
		"blank line first":   {"\r\n" + framed(ping), "", nil, ErrHeader},
		"no colon":           {"GET / HTTP/1.1\r\n\r\n", "", nil, ErrHeader},
		"JSON, no header":    {ping + "\n", "", nil, ErrHeader},
		"negative":           {"Content-Length: -1\r\n\r\n", "", nil, ErrHeader},
		"no number":          {"Content-Length: ten\r\n\r\n", "", nil, ErrHeader},
		"over a GiB":         {"Content-Length: 1073741825\r\n\r\n", "", nil, ErrHeader},
		"beyond int64":       {"Content-Length: 99999999999999999999\r\n\r\n", "", nil, ErrHeader},
		"two lengths":        {"Content-Length: 39\r\n" + framed(ping), "", nil, ErrHeader},
		"endless line":       {strings.Repeat("x", 1<<20), "", nil, ErrHeader},
		"endless block":      {strings.Repeat("X: y\r\n", 1<<16), "", nil, ErrHeader},
		"byte order mark":    {"\ufeff" + framed(ping), "", nil, ErrHeader},
		"good, then garbage": {framed(ping) + "garbage\r\n\r\n", "ping", nil, ErrHeader},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var problems []Problem
			s := reading(t, strings.NewReader(test.input), &problems)
			var methods []string
			for {
				msg, _, err := s.Read(t.Context())
				if err != nil {
					if !errors.Is(err, test.end) {
						t.Errorf("the end is %v, want %v", err, test.end)
					}
					break
				}
				methods = append(methods, msg.(jsonrpc2.RequestMessage).Method())
			}
			if got := strings.Join(methods, " "); got != test.methods {
				t.Errorf("messages %q, want %q", got, test.methods)
			}
			if fmt.Sprint(problems) != fmt.Sprint(test.problems) {
				t.Errorf("problems %v, want %v", problems, test.problems)
			}
		})
	}
}

// TestReadTellsCalls names the call that is refused for half a surrogate pair,
// so that whoever waits for it is told.
func TestReadTellsCalls(t *testing.T) {
	for message, want := range map[string]jsonrpc2.ID{
		`{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":["\ud83d"]}}`:       jsonrpc2.NewNumberID(7),
		`{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":"\ude00\ud83d"}}`: jsonrpc2.NewStringID("x"),
		`{"jsonrpc":"2.0","id":"\ud83d","method":"m"}`:                          {},
		`{"jsonrpc":"2.0","method":"m","params":{"a":"\ud83d"}}`:                {},
		`{"jsonrpc":"2.0","id":7,"result":"\ud83d"}`:                            {},
		`{"jsonrpc":"2.0","id":7,"method":"m","params":"` + "\xff" + `"}`:       {},
	} {
		told := 0
		s := New(io.NopCloser(strings.NewReader(framed(message))), nopWriter{}, Options{Invalid: func(_ Problem, id jsonrpc2.ID) error {
			told++
			if id != want {
				t.Errorf("%s is told with the id %v, want %v", message, id, want)
			}
			return nil
		}})
		if _, _, err := s.Read(t.Context()); !errors.Is(err, io.EOF) || told != 1 {
			t.Errorf("%s is told of %d times, and the end is %v", message, told, err)
		}
		s.Close()
		<-s.Done()
	}
}

// TestReadNoLine tells a peer of another framing, which waits behind its first
// message, at the first byte.
func TestReadNoLine(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() { _, _ = io.WriteString(out, ping) }()
	var problems []Problem
	s := reading(t, in, &problems)
	if _, _, err := s.Read(t.Context()); !errors.Is(err, ErrHeader) {
		t.Fatalf("the end is %v", err)
	}
	in.Close()
}

// TestReadHeaderLimit refuses a header that is too long at the first byte too
// many, from a peer that then waits.
func TestReadHeaderLimit(t *testing.T) {
	long := "X: " + strings.Repeat("y", MaxHeader-3)
	for name, header := range map[string]string{
		"a name without an end": strings.Repeat("x", MaxHeader+1),
		"a line without an end": long + "y",
		"many lines":            strings.Repeat("X: y\r\n", MaxHeader/6+1),
		"the last line":         "Content-Length: 1\r\n" + long,
	} {
		t.Run(name, func(t *testing.T) {
			in, out := io.Pipe()
			defer out.Close()
			go func() { _, _ = io.WriteString(out, header) }()
			var problems []Problem
			s := reading(t, in, &problems)
			if _, _, err := s.Read(t.Context()); !errors.Is(err, ErrHeader) {
				t.Errorf("the end is %v", err)
			}
			in.Close()
		})
	}
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(ping))
	whole := "X: " + strings.Repeat("y", MaxHeader-len(length)-len("X: \r\n")) + "\r\n" + length
	var problems []Problem
	for _, in := range []io.Reader{strings.NewReader(whole + ping), &oneByte{strings.NewReader(whole + ping)}} {
		if _, _, err := reading(t, in, &problems).Read(t.Context()); err != nil {
			t.Errorf("a header of %d bytes: %v", len(whole), err)
		}
	}
}

// TestReadInPieces reads the same input byte by byte.
func TestReadInPieces(t *testing.T) {
	params := strings.Repeat("x", 3*firstBody)
	body := `{"jsonrpc":"2.0","id":"a","method":"m","params":["` + params + `"]}`
	var problems []Problem
	s := reading(t, io.MultiReader(
		&oneByte{strings.NewReader(framed(ping))},
		strings.NewReader(framed(body)),
		&oneByte{strings.NewReader(framed(ping))},
	), &problems)
	for i, want := range []string{"ping", "m", "ping"} {
		msg, n, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		req := msg.(*jsonrpc2.Call)
		if req.Method() != want {
			t.Fatalf("message %d is %q, want %q", i, req.Method(), want)
		}
		if want == "m" && (string(req.Params()) != `["`+params+`"]` || n != int64(len(framed(body)))) {
			t.Fatalf("the long message came out damaged: %d of %d bytes", n, len(framed(body)))
		}
	}
}

type oneByte struct{ r io.Reader }

func (o *oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

// TestReadEnd tells of the end once, and of a refusal of Invalid.
func TestReadEnd(t *testing.T) {
	refusal := errors.New("refused")
	var ends []error
	s := New(io.NopCloser(strings.NewReader(framed("42"))), nopWriter{}, Options{
		Invalid: func(Problem, jsonrpc2.ID) error { return refusal },
		ReadEnd: func(err error) { ends = append(ends, err) },
	})
	defer func() { s.Close(); <-s.Done() }()
	for range 2 {
		if _, _, err := s.Read(t.Context()); err == nil {
			t.Fatal("reading goes on after a refusal")
		}
	}
	if len(ends) != 1 || !errors.Is(ends[0], refusal) {
		t.Fatalf("told of %v, want the refusal once", ends)
	}
}

// TestLyingHeader allocates little for a body that does not come.
func TestLyingHeader(t *testing.T) {
	var problems []Problem
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		s := reading(t, strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n{", MaxBody)), &problems)
		if _, _, err := s.Read(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v", err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / 20; got > 2*firstBody {
		t.Fatalf("a header alone allocates %d bytes", got)
	}
}

// TestBufferShrinks lets go of the buffer of a long message.
func TestBufferShrinks(t *testing.T) {
	var problems []Problem
	long := `{"jsonrpc":"2.0","method":"m","params":["` + strings.Repeat("x", 8<<20) + `"]}`
	s := reading(t, strings.NewReader(framed(long)+framed(ping)), &problems)
	for range 2 {
		if _, _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if cap(s.body) > keepBuffer {
		t.Fatalf("%d bytes are kept", cap(s.body))
	}
}

// FuzzRead holds for any input: no panic, an end, and every message that comes
// out can be written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		framed(ping), framed(ping) + framed("{}"), framed("[" + ping + "]"), framed(`{"jsonrpc":"2.0","id":null,"result":null}`),
		framed(`{"jsonrpc":"2.0","id":"\u0000","error":{"code":-32601,"message":"x","data":{"a":[1,2.5e3]}}}`),
		"content-length: 2\nX: y\n\n{}", "Content-Length: 9999999999\r\n\r\n", "Content-Length: 0\r\n\r\n", "\r\n\r\n", "Content-Length",
		framed(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a" 1}}`), framed("\xff\xfe"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var problems []Problem
		s := reading(t, bytes.NewReader(input), &problems)
		for {
			msg, _, err := s.Read(t.Context())
			if err != nil {
				return
			}
			again := reading(t, strings.NewReader(framed(string(jsonrpc2.AppendMessage(nil, msg)))), &problems)
			before := len(problems)
			if _, _, err := again.Read(t.Context()); err != nil && len(problems) == before {
				t.Fatalf("what was read cannot be read again: %v", err)
			}
			if len(problems) != before {
				t.Fatalf("what was read is no message when written again: %q", jsonrpc2.AppendMessage(nil, msg))
			}
		}
	})
}
