package plugin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/tool"
)

// RunRequest is the standard input of the action run; arguments is one JSON
// object. More than [MaxArguments] is [tool.InvalidParams].
func RunRequest(name string, arguments json.RawMessage) ([]byte, error) {
	if len(arguments) > MaxArguments {
		return nil, tool.Errorf(tool.InvalidParams, "the arguments of %s have %d bytes, and may have %d", name, len(arguments), MaxArguments).
			WithPath("arguments")
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	raw, err := jsonv2.Marshal(struct {
		Action    string         `json:"action"`
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	}{"run", name, jsontext.Value(arguments)})
	if err != nil {
		return nil, tool.Errorf(tool.InvalidParams, "the arguments of %s are not a JSON object", name).WithPath("arguments")
	}
	return append(raw, '\n'), nil
}

// ParseAnswer reads the answer to the action run. "ok": false is a result with
// IsError, for the model. A result that is an object with a list "content" is
// taken as MCP's; a string is text; any other value is structured content beside
// its text, in an object {"result": …} where it is none. The error says what is
// wrong with the answer.
func ParseAnswer(answer []byte) (tool.Result, error) {
	if len(answer) > MaxAnswer {
		return tool.Result{}, fmt.Errorf("it answered run with more than %d bytes", MaxAnswer)
	}
	var a struct {
		OK     *bool          `json:"ok"`
		Result jsontext.Value `json:"result"`
		Error  jsontext.Value `json:"error"`
	}
	if err := decode("run", answer, &a); err != nil {
		return tool.Result{}, err
	}
	switch {
	case a.OK == nil:
		return tool.Result{}, fmt.Errorf(`it answered run without the member "ok": %s`, quoted(answer))
	case !*a.OK:
		return bounded(tool.Failed(failure(a.Error)))
	}
	r, err := result(a.Result)
	if err != nil {
		return tool.Result{}, err
	}
	return bounded(r)
}

// failure is what an error says: a text, an object with a message, or whatever it
// is.
func failure(raw jsontext.Value) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text
	}
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Message != "" {
		return object.Message
	}
	if len(raw) == 0 || text == "" && raw.Kind() != '{' {
		return "the tool failed and did not say why"
	}
	return string(raw)
}

func result(raw jsontext.Value) (tool.Result, error) {
	switch raw.Kind() {
	case jsontext.KindInvalid, jsontext.KindNull:
		return tool.Result{}, nil
	case jsontext.KindString:
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: text}}}, nil
	case jsontext.KindBeginObject:
		if r, is, err := contents(raw); is || err != nil {
			return r, err
		}
	}
	if err := raw.Compact(); err != nil {
		return tool.Result{}, err
	}
	text := tool.Part{Type: tool.PartText, Text: string(raw)}
	if raw.Kind() != jsontext.KindBeginObject {
		raw = jsontext.Value(fmt.Sprintf(`{"result":%s}`, raw))
	}
	return tool.Result{Content: []tool.Part{text}, StructuredContent: json.RawMessage(raw)}, nil
}

// contents reads a result in MCP's shape, and says whether it is one.
func contents(raw jsontext.Value) (r tool.Result, is bool, err error) {
	var m struct {
		Content         jsontext.Value `json:"content"`
		Structured      jsontext.Value `json:"structured_content"`
		CamelStructured jsontext.Value `json:"structuredContent"`
		IsError         bool           `json:"is_error"`
		CamelIsError    bool           `json:"isError"`
	}
	if jsonv2.Unmarshal(raw, &m) != nil || m.Content.Kind() != jsontext.KindBeginArray {
		return r, false, nil
	}
	var parts []jsontext.Value
	if err := jsonv2.Unmarshal(m.Content, &parts); err != nil {
		return r, true, err
	}
	if len(parts) > tool.MaxParts {
		return r, true, fmt.Errorf("its result has %d parts, and may have %d", len(parts), tool.MaxParts)
	}
	for i, p := range parts {
		part, err := readPart(p)
		if err != nil {
			return r, true, fmt.Errorf("part %d of its result: %w", i+1, err)
		}
		r.Content = append(r.Content, part)
	}
	r.IsError = m.IsError || m.CamelIsError
	if m.Structured == nil {
		m.Structured = m.CamelStructured
	}
	if m.Structured.Kind() == jsontext.KindBeginObject {
		if err := m.Structured.Compact(); err != nil {
			return r, true, err
		}
		r.StructuredContent = json.RawMessage(m.Structured)
	}
	return r, true, nil
}

// part is one part of MCP, or of ours.
type part struct {
	Type      tool.PartType `json:"type"`
	Text      string        `json:"text"`
	Data      string        `json:"data"`
	MIMEType  string        `json:"mime_type"`
	CamelMIME string        `json:"mimeType"`
	URI       string        `json:"uri"`
	Name      string        `json:"name"`
	Resource  *resource     `json:"resource"`
}

type resource struct {
	URI       string `json:"uri"`
	MIMEType  string `json:"mime_type"`
	CamelMIME string `json:"mimeType"`
	Text      string `json:"text"`
	Blob      string `json:"blob"`
}

// readPart takes what it knows. What it does not know is text for the model to
// make something of.
func readPart(raw jsontext.Value) (tool.Part, error) {
	var p part
	if err := jsonv2.Unmarshal(raw, &p); err != nil {
		return tool.Part{Type: tool.PartText, Text: string(raw)}, nil
	}
	out := tool.Part{Type: p.Type, Text: p.Text, Data: p.Data, MIMEType: p.MIMEType + p.CamelMIME, URI: p.URI, Name: p.Name}
	switch p.Type {
	case tool.PartText:
		return tool.Part{Type: tool.PartText, Text: p.Text}, nil
	case tool.PartImage, tool.PartAudio:
		out.Text = ""
		if out.Data == "" || out.MIMEType == "" {
			return out, fmt.Errorf("an %s needs data and mimeType", p.Type)
		}
	case tool.PartResource:
		if r := p.Resource; r != nil {
			out.URI, out.MIMEType, out.Text, out.Data = r.URI, r.MIMEType+r.CamelMIME, r.Text, r.Blob
		}
		if out.URI == "" {
			return out, fmt.Errorf("a resource needs a uri")
		}
	case tool.PartResourceLink:
		if out.URI == "" {
			return out, fmt.Errorf("a resource_link needs a uri")
		}
		out.Text, out.Data = "", ""
	default:
		return tool.Part{Type: tool.PartText, Text: string(raw)}, nil
	}
	if _, err := base64.StdEncoding.DecodeString(out.Data); err != nil {
		return out, fmt.Errorf("its data is not base64")
	}
	return out, nil
}

// bounded refuses a result that no worker may send.
func bounded(r tool.Result) (tool.Result, error) {
	inline, all := 0, len(r.StructuredContent)
	for _, p := range r.Content {
		inline += base64.StdEncoding.DecodedLen(len(p.Data))
		all += len(p.Text) + len(p.Data)
	}
	switch {
	case inline > tool.MaxInlineBytes:
		return tool.Result{}, fmt.Errorf("its result holds %d bytes of data, and may hold %d", inline, tool.MaxInlineBytes)
	case all > tool.MaxResultBytes:
		return tool.Result{}, fmt.Errorf("its result has %d bytes, and may have %d", all, tool.MaxResultBytes)
	}
	return r, nil
}

// Ended says in words how a program ended that answered nothing of use: its exit
// code, and the end of what it wrote to standard error.
func Ended(exit int, signal string, stderr []byte) string {
	how := fmt.Sprintf("it ended with exit code %d", exit)
	if signal != "" {
		how = "it was ended by " + signal
	}
	stderr = bytes.TrimSpace(stderr)
	if len(stderr) == 0 {
		return how
	}
	if cut := len(stderr) - maxSaid; cut > 0 {
		stderr = append([]byte("…"), bytes.ToValidUTF8(stderr[cut:], nil)...)
	}
	return how + " and said: " + string(bytes.ToValidUTF8(stderr, []byte("\ufffd")))
}

// maxSaid is how much of the end of standard error an error holds, in bytes.
const maxSaid = 1 << 10
