package frame

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// Read implements [jsonrpc2.Stream]. It returns the next message that is one:
// what is none goes to [Options.Invalid], and reading goes on when that returns
// nil. The context is not looked at; Close ends a blocked Read as far as the
// input allows it.
//
// A request borrows the stream's buffer until the next Read.
func (s *Stream) Read(context.Context) (jsonrpc2.Message, int64, error) {
	for {
		msg, n, err := s.readMessage()
		problem, invalid := errors.AsType[Problem](err)
		if !invalid {
			return msg, n, s.readEnd(err)
		}
		if err := s.o.Invalid(problem, callID(msg)); err != nil {
			return nil, 0, s.readEnd(err)
		}
	}
}

// readEnd reports the error that ends reading, once.
func (s *Stream) readEnd(err error) error {
	if err != nil && s.o.ReadEnd != nil {
		s.readOnce.Do(func() { s.o.ReadEnd(err) })
	}
	return err
}

func (s *Stream) readMessage() (jsonrpc2.Message, int64, error) {
	length, header, err := readHeader(s.in)
	if err != nil {
		return nil, 0, err
	}
	if length > MaxBody {
		if _, err := io.CopyN(io.Discard, s.in, length); err != nil {
			return nil, 0, noEOF(err)
		}
		return nil, 0, TooLong
	}
	body, err := s.readBody(int(length))
	if err != nil {
		return nil, 0, noEOF(err)
	}
	msg, err := s.decode(body)
	return msg, header + length, err
}

// decode makes a message of a body. The library's scanner takes structure on
// trust, so that the whole is checked first: what is spliced into an answer
// later must not be able to break it. With [NotText] the message comes too, so
// that whoever waits for its answer can be told.
func (s *Stream) decode(body []byte) (jsonrpc2.Message, error) {
	var problem error
	if !s.o.Decoded && !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		if !utf8.Valid(body) || !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return nil, NotJSON
		}
		problem = NotText
	}
	msg, err := jsonrpc2.DecodeMessage(body)
	if err != nil {
		return nil, NotMessage
	}
	// The library takes a request whose id is null for a notification: nobody
	// would be told of it.
	if _, tells := msg.(*jsonrpc2.Notification); tells && !s.o.Decoded && hasID(body) {
		return nil, NotMessage
	}
	return msg, problem
}

// hasID reports whether an object that was checked has the member id.
func hasID(object []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for _, err := d.ReadToken(); err == nil && d.PeekKind() == '"'; err = d.SkipValue() {
		name, err := d.ReadToken()
		if err != nil || name.String() == "id" {
			return err == nil
		}
	}
	return false
}

// callID is the id of a call; that of anything else is null.
func callID(msg jsonrpc2.Message) jsonrpc2.ID {
	call, ok := msg.(*jsonrpc2.Call)
	if !ok {
		return jsonrpc2.ID{}
	}
	// Half a pair in the id itself has been replaced: it is not the peer's.
	if text, _ := call.ID().StringValue(); strings.ContainsRune(text, utf8.RuneError) {
		return jsonrpc2.ID{}
	}
	return call.ID()
}

// readBody reads n bytes into the stream's buffer, which grows only as bytes
// arrive and is let go again after a long message.
func (s *Stream) readBody(n int) ([]byte, error) {
	if cap(s.body) > keepBuffer {
		s.body = nil
	}
	if n <= cap(s.body) {
		body := s.body[:n]
		_, err := io.ReadFull(s.in, body)
		return body, err
	}
	s.body = make([]byte, 0, min(n, firstBody))
	for len(s.body) < n {
		if len(s.body) == cap(s.body) {
			grown := make([]byte, len(s.body), min(n, 4*cap(s.body)))
			copy(grown, s.body)
			s.body = grown
		}
		part := s.body[len(s.body):min(n, cap(s.body))]
		if _, err := io.ReadFull(s.in, part); err != nil {
			return nil, err
		}
		s.body = s.body[:len(s.body)+len(part)]
	}
	return s.body, nil
}

// readHeader reads one header block and returns the body's length and the
// block's. Names may be in any case and lines may end in a bare newline; other
// fields are ignored. Anything else is [ErrHeader], an end before the first
// byte [io.EOF].
func readHeader(in *bufio.Reader) (length, read int64, err error) {
	length = -1
	for {
		// A peer of another framing may wait for an answer without ever ending
		// a line.
		if c, err := in.Peek(1); err == nil && c[0] != '\r' && c[0] != '\n' && !fieldName(string(c)) {
			return 0, 0, fmt.Errorf("%w: it begins with %q", ErrHeader, c)
		}
		line, err := readLine(in, MaxHeader-int(read))
		read += int64(len(line))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, 0, fmt.Errorf("%w: more than %d bytes", ErrHeader, MaxHeader)
		case err != nil && read == 0:
			return 0, 0, err
		case err != nil:
			return 0, 0, noEOF(err)
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) == 0 {
			if length < 0 {
				return 0, 0, fmt.Errorf("%w: the block has no Content-Length", ErrHeader)
			}
			return length, read, nil
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || !fieldName(name) {
			return 0, 0, fmt.Errorf("%w: %q", ErrHeader, head(line))
		}
		if !strings.EqualFold(name, "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 63)
		if err != nil || n > MaxDeclared || length >= 0 && int64(n) != length {
			return 0, 0, fmt.Errorf("%w: %q", ErrHeader, head(line))
		}
		length = int64(n)
	}
}

// readLine reads a line of at most limit bytes, its newline included, and waits
// for no byte that it does not need: a longer line fails with
// [bufio.ErrBufferFull] as soon as it is one, also when its sender then waits.
// The line lasts until the next read.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	for seen := 0; ; {
		if seen >= limit {
			return nil, bufio.ErrBufferFull
		}
		if b, err := in.Peek(seen + 1); err != nil {
			return b, err
		}
		b, err := in.Peek(min(in.Buffered(), limit))
		if i := bytes.IndexByte(b[seen:], '\n'); i >= 0 {
			b = b[:seen+i+1]
			_, err = in.Discard(len(b)) // what is buffered, and stays where it is
			return b, err
		}
		if seen = len(b); err != nil {
			return b, err
		}
	}
}

// fieldName reports whether a header field may be called so. A peer of another
// framing, which sends bare JSON, is told at its first line.
func fieldName(name string) bool {
	for _, c := range []byte(name) {
		if c != '-' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// head is the beginning of a line, for an error.
func head(line []byte) []byte {
	const enough = 80
	return line[:min(len(line), enough)]
}

// noEOF makes an end inside a frame one that cannot be mistaken for a clean one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
