package rpc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestTranscripts plays testdata/rpc/*.txtar, which are documentation as much
// as tests; testdata/rpc/README.md tells how they are written.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("../testdata/rpc/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	known := newSchemas(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := playerOf(t, serve(t, nil))
			p.schemas = known
			for _, f := range archive.Files {
				if f.Name == "transcript" {
					p.play(string(f.Data))
					return
				}
				p.put(f.Name, f.Data)
			}
			t.Fatal("there is no file called transcript")
		})
	}
}

// player plays one transcript. It speaks the framing by itself: what it tests
// must not be what it tests with.
type player struct {
	*testing.T
	h      *harness
	in     *bufio.Reader
	vars   map[string]string
	line   int
	unread []any // notifications that nobody has expected yet

	schemas *schemas         // nil checks nothing
	asked   map[any][]string // by id, the methods
}

func playerOf(t *testing.T, h *harness) *player {
	dir := t.TempDir()
	return &player{
		T: t, h: h, in: bufio.NewReader(h.out), asked: map[any][]string{},
		vars: map[string]string{"dir": filepath.ToSlash(dir), "workspace": "file://" + filepath.ToSlash(dir)},
	}
}

// put makes a file of the workspace, but for the user's configuration.
func (p *player) put(name string, data []byte) {
	if name == "config.json" {
		if err := os.WriteFile(filepath.Join(p.vars["dir"], name), data, 0o600); err != nil {
			p.Fatal(err)
		}
		return
	}
	p.h.files["/w/"+name] = data
}

var lineKinds = regexp.MustCompile(`^(->|<-|=>|!|end) ?(.*)$`)

func (p *player) play(transcript string) {
	p.Helper()
	lines := strings.Split(transcript, "\n")
	for i := 0; i < len(lines); i++ {
		p.line = i + 1
		text := lines[i]
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		m := lineKinds.FindStringSubmatch(text)
		if m == nil {
			p.fatalf("cannot be understood: %q", text)
		}
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") { // continued
			i++
			m[2] += "\n" + lines[i]
		}
		p.step(m[1], p.expand(m[2]))
	}
}

func (p *player) step(kind, text string) {
	p.Helper()
	switch kind {
	case "->":
		p.send(text)
	case "<-":
		p.expect(text)
	case "=>":
		raw, err := strconv.Unquote(text)
		if err != nil {
			p.fatalf("%v", err)
		}
		p.sendRaw(raw)
	case "!":
		p.act(text)
	case "end":
		if got := fmt.Sprint(p.h.wait(p)); got != text {
			p.fatalf("the exit code is %s, want %s (%v)", got, text, p.h.err)
		}
	}
}

func (p *player) fatalf(format string, args ...any) {
	p.Helper()
	p.Fatalf("transcript line %d: %s", p.line, fmt.Sprintf(format, args...))
}

// expand replaces ${name} by what was captured under that name.
func (p *player) expand(text string) string {
	return os.Expand(text, func(name string) string {
		if value, ok := p.vars[name]; ok {
			return value
		}
		return "$" + name // such as $/progress
	})
}

func (p *player) send(text string) {
	p.Helper()
	var msg map[string]any
	if err := json.Unmarshal([]byte(text), &msg); err != nil {
		p.fatalf("%v in %s", err, text)
	}
	if method, ok := msg["method"].(string); ok && msg["id"] != nil {
		p.asked[msg["id"]] = append(p.asked[msg["id"]], method)
	}
	body := `{"jsonrpc":"2.0",` + strings.TrimPrefix(text, "{")
	p.sendRaw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
}

func (p *player) sendRaw(raw string) {
	p.Helper()
	if _, err := io.WriteString(p.h.in, raw); err != nil {
		p.fatalf("%v", err)
	}
}

// act is what happens in the environment.
func (p *player) act(text string) {
	p.Helper()
	verb, rest, _ := strings.Cut(text, " ")
	const process = "p-00000000000000000000"
	switch verb {
	case "writes":
		out, err := strconv.Unquote(rest)
		if err != nil {
			p.fatalf("%v", err)
		}
		p.h.env().write(process, out)
	case "exits":
		code, err := strconv.Atoi(rest)
		if err != nil {
			p.fatalf("%v", err)
		}
		p.h.env().exit(process, code)
	case "entered":
		<-p.h.entered
	case "release":
		p.h.release()
	case "hangup":
		p.h.in.Close()
	default:
		p.fatalf("no action %q", verb)
	}
}

// receive reads one message.
func (p *player) receive() any {
	p.Helper()
	timer := time.AfterFunc(patience, func() { p.h.out.CloseWithError(fmt.Errorf("nothing came in %v", patience)) })
	defer timer.Stop()
	header, err := p.in.ReadString('\n')
	if err != nil {
		p.fatalf("%v", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(header, "Content-Length: ")))
	if err != nil {
		p.fatalf("bad header %q", header)
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(p.in, body); err != nil {
		p.fatalf("%v", err)
	}
	var msg map[string]any
	if err := json.Unmarshal(body[2:], &msg); err != nil {
		p.fatalf("%v in %s", err, body)
	}
	if msg["jsonrpc"] != "2.0" {
		p.fatalf("no jsonrpc 2.0 in %s", body)
	}
	delete(msg, "jsonrpc")
	p.checkSchema(msg)
	return msg
}

// checkSchema holds what came against the generated schema.
func (p *player) checkSchema(msg map[string]any) {
	p.Helper()
	if p.schemas == nil {
		return
	}
	var err error
	if result, ok := msg["result"]; ok && result != nil {
		for _, method := range p.asked[msg["id"]] { // more than one when ids are used again
			if err = p.schemas.check(p.schemas.results[method], result); err == nil {
				break
			}
		}
	} else if failure, ok := msg["error"]; ok {
		err = p.schemas.check("Error", failure)
	} else if method, ok := msg["method"].(string); ok {
		err = p.schemas.check(p.schemas.params[method], msg["params"])
	}
	if err != nil {
		got, _ := json.Marshal(msg)
		p.fatalf("not as the schema says: %v\n%s", err, got)
	}
}

// expect waits for a message like the text. Notifications that are not like it
// are kept for later; an answer that is not is an error.
func (p *player) expect(text string) {
	p.Helper()
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		p.fatalf("%v in %s", err, text)
	}
	for i, msg := range p.unread {
		if p.like(want, msg, "") == "" {
			p.unread = slices.Delete(p.unread, i, i+1)
			return
		}
	}
	for {
		msg := p.receive()
		difference := p.like(want, msg, "")
		if difference == "" {
			return
		}
		_, notification := msg.(map[string]any)["method"]
		_, wantNotification := want.(map[string]any)["method"]
		if !notification || wantNotification && msg.(map[string]any)["method"] == want.(map[string]any)["method"] && !p.maybe(want) {
			got, _ := json.Marshal(msg)
			p.fatalf("%s\n got %s\nwant %s", difference, got, text)
		}
		p.unread = append(p.unread, msg)
	}
}

// maybe reports whether other notifications of this method may come before.
func (p *player) maybe(want any) bool {
	params, _ := want.(map[string]any)["params"].(map[string]any)
	_, loose := params["..."]
	return loose
}

var placeholder = regexp.MustCompile(`^<(any|string|number|time|base64)(?: (\w+))?>$`)

// like says where got is not like want; "" when it is. In want, the member
// "..." allows further members, and placeholders stand for values.
func (p *player) like(want, got any, at string) string {
	switch want := want.(type) {
	case string:
		if m := placeholder.FindStringSubmatch(want); m != nil {
			return p.matches(m[1], m[2], got, at)
		}
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			break
		}
		_, more := want["..."]
		for name, value := range want {
			if name == "..." {
				continue
			}
			if _, has := object[name]; !has {
				return fmt.Sprintf("%s.%s is missing", at, name)
			}
			if d := p.like(value, object[name], at+"."+name); d != "" {
				return d
			}
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if _, has := want[name]; !has && !more {
				return fmt.Sprintf("%s.%s is not expected", at, name)
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			break
		}
		for i := range want {
			if d := p.like(want[i], list[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
		return ""
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if string(a) == string(b) {
		return ""
	}
	return fmt.Sprintf("%s is %s, not %s", at, b, a)
}

// matches checks a placeholder and captures the value under the name.
func (p *player) matches(kind, name string, got any, at string) string {
	text, isText := got.(string)
	ok := true
	switch kind {
	case "string", "base64":
		ok = isText
	case "number":
		_, ok = got.(float64)
	case "time":
		_, err := time.Parse(time.RFC3339Nano, text)
		ok = err == nil && strings.HasSuffix(text, "Z")
	}
	if !ok {
		return fmt.Sprintf("%s is %v, not a %s", at, got, kind)
	}
	if name != "" {
		p.vars[name] = text
	}
	return ""
}
