package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Frame is one frame, in either direction. Which members are set says what it
// is: a request has a Method, a reply has none.
type Frame struct {
	ID       string
	ParentID string
	Method   string
	Token    string
	// Data is valid JSON, or nil: null and a missing member are the same.
	Data json.RawMessage
	// Error is why a request failed; empty means that it did not.
	Error string
	// Detail is Error's kind and more, where both ends know [CapErrors].
	Detail *ErrorDetail
	// Raw is how many raw bytes follow the frame's line, at most [MaxRaw].
	Raw int
	// Body is how many bytes belong to the frame and follow in frames of their
	// own; 0 when none do.
	Body int64
}

// A FrameError is a line that is no frame, or a frame that breaks a limit. The
// connection that it came over is of no more use.
type FrameError struct {
	Reason string
	Head   []byte // of the line; empty where the line may hold a secret
	Err    error  // the cause, if there is one
}

func (e *FrameError) Unwrap() error { return e.Err }

func (e *FrameError) Error() string {
	if len(e.Head) == 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s: %q", e.Reason, e.Head)
}

// rawFrame is a frame whose members are parts of the line that it was read from.
type rawFrame struct {
	id, parentID, method, token []byte
	data, err, detail           []byte // data and detail as they stand; nil for null
	raw                         int
	body                        int64
	members                     uint16 // which members the line had
}

// The members of a frame, as bits of rawFrame.members.
const (
	memberID = 1 << iota
	memberParentID
	memberMethod
	memberToken
	memberData
	memberError
	memberDetail
	memberRaw
	memberBody
)

// parse takes a line without its newline apart. raw and body count only with
// bulk: to a peer that knows no bodies they are unknown members like any other.
func (f *rawFrame) parse(line []byte, bulk bool) error {
	*f = rawFrame{}
	if !utf8.Valid(line) {
		return errNotUTF8
	}
	return eachMember(line, func(name, value []byte) error { return f.member(name, value, bulk) })
}

// member sets the member called name.
func (f *rawFrame) member(name, value []byte, bulk bool) (err error) {
	var bit uint16
	switch string(name) {
	case "id":
		bit = memberID
		f.id, err = stringValue(value)
	case "parent_id":
		bit = memberParentID
		f.parentID, err = stringValue(value)
	case "method":
		bit = memberMethod
		f.method, err = stringValue(value)
	case "token":
		bit = memberToken
		f.token, err = stringValue(value)
	case "error":
		bit = memberError
		f.err, err = stringValue(value)
	case "data":
		bit = memberData
		f.data = notNull(value)
	case "detail":
		bit = memberDetail
		f.detail = notNull(value)
	case "raw":
		if !bulk {
			return nil
		}
		bit = memberRaw
		var n int64
		n, err = countValue(value, MaxRaw)
		f.raw = int(n)
	case "body":
		if !bulk {
			return nil
		}
		bit = memberBody
		f.body, err = countValue(value, maxAnnounced)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("member %q: %w", name, err)
	}
	if f.members&bit != 0 {
		return fmt.Errorf("member %q stands twice", name)
	}
	f.members |= bit
	return nil
}

// maxAnnounced keeps sums of body sizes far from overflowing.
const maxAnnounced = 1 << 53

func notNull(value []byte) []byte {
	if isNull(value) {
		return nil
	}
	return value
}

// isFrame tells a frame from any other object, such as one in a banner.
func (f *rawFrame) isFrame() bool { return len(f.id) > 0 || string(f.method) == methodProcess }

// frame is a copy of f that outlives the line.
func (f *rawFrame) frame() (Frame, error) {
	detail, err := parseDetail(f.detail)
	if err != nil {
		return Frame{}, err
	}
	return Frame{
		ID: string(f.id), ParentID: string(f.parentID), Method: string(f.method), Token: string(f.token),
		Data: bytes.Clone(f.data), Error: string(f.err), Detail: detail, Raw: f.raw, Body: f.body,
	}, nil
}

// appendFrame appends f as a line. data encodes Data when that is nil.
func appendFrame(b []byte, f *Frame, data any) ([]byte, error) {
	b = append(b, `{"id":`...)
	b = appendString(b, f.ID)
	if f.ParentID != "" {
		b = appendString(append(b, `,"parent_id":`...), f.ParentID)
	}
	if f.Method != "" {
		b = appendString(append(b, `,"method":`...), f.Method)
	}
	if f.Token != "" {
		b = appendString(append(b, `,"token":`...), f.Token)
	}
	if f.Error != "" {
		b = appendString(append(b, `,"error":`...), f.Error)
		if f.Detail != nil {
			b = append(b, `,"detail":`...)
			var err error
			if b, err = appendJSON(b, f.Detail); err != nil {
				return b, err
			}
		}
	}
	if f.Data != nil {
		data = f.Data
	}
	if data == nil && f.Method == "" && f.Error == "" {
		b = append(b, `,"data":null`...) // a reply has one or the other
	}
	if data != nil {
		b = append(b, `,"data":`...)
		var err error
		if b, err = appendJSON(b, data); err != nil {
			return b, err
		}
	}
	if f.Raw > 0 {
		b = strconv.AppendInt(append(b, `,"raw":`...), int64(f.Raw), 10)
	}
	if f.Body > 0 {
		b = strconv.AppendInt(append(b, `,"body":`...), f.Body, 10)
	}
	b = append(b, "}\n"...)
	if len(b) > MaxFrame {
		return b, errTooLong
	}
	return b, nil
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD: what must arrive exactly is not sent as text.
func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

var (
	errNotUTF8 = errors.New("not UTF-8")
	// errTooLong is a frame that was not sent.
	errTooLong = errors.New("the frame would be longer than 16 MiB")
)
