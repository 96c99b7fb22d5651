package rpc

import (
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestQuotedText writes text that came as JSON as it writes other text.
func TestQuotedText(t *testing.T) {
	const text = "a \"line\"\n\ttab, é and \\"
	quoted := tool.Part{Type: tool.PartText, Quoted: appendText(nil, text)}
	if quoted.String() != text {
		t.Fatalf("the text is %q", quoted.String())
	}
	want, err := appendPart(nil, tool.Part{Type: tool.PartText, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := appendPart(nil, quoted); err != nil || string(got) != string(want) {
		t.Fatalf("got %s, %v; want %s", got, err, want)
	}
}
