package check

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
)

// prints is a program that says something and ends.
type prints struct{ io.Reader }

func (prints) Write(p []byte) (int, error)       { return len(p), nil }
func (prints) Gone() <-chan struct{}             { return nil }
func (prints) ExitedWithin(time.Duration) bool   { return false }
func (prints) Err() error                        { return nil }
func (prints) CloseWithin(_ time.Duration) error { return nil }
func (prints) Held() []string                    { return nil }

// TestInstead: whoever waits for a reply in vain is told what came in its place.
func TestInstead(t *testing.T) {
	t.Parallel()
	for said, words := range map[string]string{
		"":                                    "",
		"{\"id\":1,\"data\":{}}\n":            "ids are strings, and its is a number",
		"{\"id\":\"one\",\"data\":{}}\n":      `with the id "1"; what came last and was none: a reply with the id "one", which no request has`,
		"{\"data\":{}}\n":                     "it has no id",
		"[1]\n":                               "a frame is an object",
		"{'id': '1'}\n":                       "it is not JSON",
		"{\"id\":\"1\",\"method\":2}\n":       "method",
		"Welcome\n{\"id\":\"1\",\"data\":{}}": `ends in a line without a newline: "{\"id\":\"1\",\"data\":{}}"`,
	} {
		p := &peer{
			run: new(run), program: prints{strings.NewReader(said)}, secrets: strings.NewReplacer(), stderr: new(program.Tail), ended: make(chan struct{}),
			pending: make(map[string]*waiting), answered: make(map[string]bool), silent: make(map[string]string),
		}
		p.read()
		if told := p.instead(&waiting{id: "1", method: "initialize"}); !strings.Contains(told, words) || words == "" && told != "" {
			t.Errorf("of %q it says %q", said, told)
		}
	}
}

// TestAsSent: what is wrong with a reply is told in the words in which it came.
func TestAsSent(t *testing.T) {
	t.Parallel()
	r := new(trial).judge(func() {
		new(trial).broken("%v, %v and %s of %d", args{"command": "a && b", "files": []any{map[string]any{"size": 5.0}}}, []any{true, nil}, "text", 1)
	})
	if want := `{"command":"a && b","files":[{"size":5}]}, [true,null] and text of 1`; r.Detail != want {
		t.Errorf("it says %q", r.Detail)
	}
	r = new(trial).judge(func() { new(trial).broken("%v", args{"output": strings.Repeat("ü", shownBytes)}) })
	if len(r.Detail) > shownBytes+len("…") || !strings.HasSuffix(r.Detail, "ü…") {
		t.Errorf("it says %q", r.Detail)
	}
}
