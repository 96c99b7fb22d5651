package wire

import (
	"bytes"
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/caisson-dev/caisson/backends/tool"
)

// encoding and decoding are how values that are not on the hot path become JSON
// and back. What we send leaves empty members out as the tags say; what we get
// may be written by anybody.
var (
	encoding = json.JoinOptions(
		jsonv1.OmitEmptyWithLegacySemantics(true),
		jsontext.AllowInvalidUTF8(true),
	)
	decoding = json.JoinOptions(
		jsonv1.ParseTimeWithLooseRFC3339(true),
		jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true),
	)
)

func decodeJSON(data []byte, v any) error { return json.Unmarshal(data, v, decoding) }

// appendJSON appends v. The types of small, frequent calls are written by hand;
// a json.RawMessage goes as it is, on one line.
func appendJSON(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case stdjson.RawMessage:
		return appendRaw(b, v)
	case *Execute:
		return v.append(b), nil
	case answer:
		return v.append(b)
	case tool.Process:
		return v.AppendJSON(b), nil
	case tool.ProcessEvent:
		return v.AppendJSON(b), nil
	case tool.Result:
		return appendResult(b, &v)
	case *tool.Result:
		return appendResult(b, v)
	default:
		out, err := json.Marshal(v, encoding)
		return append(b, out...), err
	}
}

// appendRaw appends JSON that its owner answers for. Only its line breaks matter
// here: they can stand between tokens only, and would end the frame.
func appendRaw(b []byte, raw stdjson.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return append(b, "null"...), nil
	}
	if bytes.IndexByte(raw, '\n') < 0 {
		return append(b, raw...), nil
	}
	line := jsontext.Value(bytes.Clone(raw))
	if err := line.Compact(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return b, err
	}
	return append(b, line...), nil
}

// append appends e's JSON.
func (e *Execute) append(b []byte) []byte {
	b = append(b, `{"call":{`...)
	if e.Call.ID != "" {
		b = append(appendString(append(b, `"id":`...), e.Call.ID), ',')
	}
	b = appendString(append(b, `"name":`...), e.Call.Name)
	b = appendString(append(b, `,"arguments":`...), e.Call.Arguments)
	b = appendString(append(b, `},"actor":`...), e.Actor)
	if e.ActorKind != "" {
		b = appendString(append(b, `,"actor_kind":`...), e.ActorKind)
	}
	if e.PermissionMode != "" {
		b = appendString(append(b, `,"permission_mode":`...), e.PermissionMode)
	}
	if e.GitAttributionEnabled {
		b = append(b, `,"git_attribution_enabled":true`...)
	}
	if e.MaxOutputBytes != 0 {
		b = fmt.Appendf(b, `,"max_output_bytes":%d`, e.MaxOutputBytes)
	}
	return append(b, '}')
}

// parse sets e from JSON and returns what Call.Arguments means, which it
// leaves empty.
func (e *Execute) parse(data []byte) (arguments []byte, err error) {
	err = eachMember(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "call":
			arguments, err = e.Call.parse(value)
		case "actor":
			e.Actor, err = textValue(value)
		case "actor_kind":
			var kind string
			kind, err = textValue(value)
			e.ActorKind = tool.ActorKind(kind)
		case "permission_mode":
			var mode string
			mode, err = textValue(value)
			e.PermissionMode = tool.Mode(mode)
		case "git_attribution_enabled":
			e.GitAttributionEnabled, err = boolValue(value)
		case "max_output_bytes":
			e.MaxOutputBytes, err = countValue(value, maxAnnounced)
		}
		return inMember(name, err)
	})
	return arguments, err
}

func (c *ToolCall) parse(data []byte) (arguments []byte, err error) {
	err = eachMember(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "id":
			c.ID, err = textValue(value)
		case "name":
			c.Name, err = textValue(value)
		case "arguments":
			arguments, err = stringValue(value)
		}
		return inMember(name, err)
	})
	return arguments, err
}

// answer is the data of a callback frame.
type answer struct {
	ID    string
	Data  *tool.Result
	Error string // instead of Data
}

func (a answer) append(b []byte) ([]byte, error) {
	b = appendString(append(b, `{"id":`...), a.ID)
	if a.Error != "" {
		return append(appendString(append(b, `,"error":`...), a.Error), '}'), nil
	}
	b, err := appendResult(append(b, `,"data":`...), a.Data)
	return append(b, '}'), err
}

func appendResult(b []byte, r *tool.Result) ([]byte, error) {
	var err error
	b = append(b, '{')
	if len(r.Content) > 0 {
		b = append(b, `"content":[`...)
		for i := range r.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendPart(b, &r.Content[i]); err != nil {
				return b, err
			}
		}
		b = append(b, `],`...)
	}
	if len(r.StructuredContent) > 0 {
		if b, err = appendRaw(append(b, `"structured_content":`...), r.StructuredContent); err != nil {
			return b, err
		}
		b = append(b, ',')
	}
	if len(r.Meta) > 0 {
		if b, err = appendRaw(append(b, `"meta":`...), r.Meta); err != nil {
			return b, err
		}
		b = append(b, ',')
	}
	if r.IsError {
		b = append(b, `"is_error":true,`...)
	}
	return closeObject(b), nil
}

func appendPart(b []byte, p *tool.Part) ([]byte, error) {
	b = appendString(append(b, `{"type":`...), p.Type)
	b = append(b, ',')
	member := func(name, value string) {
		if value != "" {
			b = append(appendString(append(b, name...), value), ',')
		}
	}
	member(`"text":`, p.Text)
	member(`"data":`, p.Data)
	member(`"mime_type":`, p.MIMEType)
	member(`"uri":`, p.URI)
	member(`"name":`, p.Name)
	if len(p.Artifact) > 0 {
		var err error
		if b, err = appendRaw(append(b, `"artifact":`...), p.Artifact); err != nil {
			return b, err
		}
	}
	return closeObject(b), nil
}

// closeObject ends an object whose members each end with a comma.
func closeObject(b []byte) []byte {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

// ParseResult is the tool result that data, one JSON object, holds. Its raw
// members are parts of data. Results with more than [tool.MaxParts] parts or
// [tool.MaxInlineBytes] inline data, and data over [tool.MaxResultBytes], are
// refused.
func ParseResult(data []byte) (tool.Result, error) {
	var r tool.Result
	if len(data) > tool.MaxResultBytes {
		return r, fmt.Errorf("a result of %d bytes; the limit is %d", len(data), tool.MaxResultBytes)
	}
	inline := 0
	err := eachMember(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "content":
			if isNull(value) {
				return nil
			}
			err = eachElement(value, func(value []byte) error {
				if len(r.Content) == tool.MaxParts {
					return fmt.Errorf("more than %d parts", tool.MaxParts)
				}
				part, err := parsePart(value)
				r.Content = append(r.Content, part)
				if inline += base64.StdEncoding.DecodedLen(len(part.Data)); inline > tool.MaxInlineBytes {
					return fmt.Errorf("more than %d bytes of inline data", tool.MaxInlineBytes)
				}
				return err
			})
		case "structured_content":
			r.StructuredContent = notNull(value)
		case "meta":
			r.Meta = notNull(value)
		case "is_error":
			r.IsError, err = boolValue(value)
		}
		return inMember(name, err)
	})
	return r, err
}

func parsePart(data []byte) (tool.Part, error) {
	var p tool.Part
	err := eachMember(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "type":
			var t string
			t, err = textValue(value)
			p.Type = tool.PartType(t)
		case "text":
			p.Text, err = textValue(value)
		case "data":
			p.Data, err = textValue(value)
		case "mime_type":
			p.MIMEType, err = textValue(value)
		case "uri":
			p.URI, err = textValue(value)
		case "name":
			p.Name, err = textValue(value)
		case "artifact":
			p.Artifact = notNull(value)
		}
		return inMember(name, err)
	})
	if err != nil {
		return p, err
	}
	switch p.Type {
	case tool.PartText, tool.PartImage, tool.PartAudio, tool.PartFile, tool.PartResource, tool.PartResourceLink:
	default:
		return p, fmt.Errorf("a part of the unknown type %.40q", p.Type)
	}
	// Clients hand results on as they are: what cannot be decoded must not get there.
	if _, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(p.Data))); err != nil {
		return p, fmt.Errorf("data of a part: %w", err)
	}
	return p, nil
}

// textValue is stringValue as a string.
func textValue(value []byte) (string, error) {
	s, err := stringValue(value)
	return string(s), err
}

// inMember says which member an error is about.
func inMember(name []byte, err error) error {
	if err != nil {
		return fmt.Errorf("member %q: %w", name, err)
	}
	return nil
}
