package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// TestLimitOfAForeignPeer: what it cannot keep to is kept to here.
func TestLimitOfAForeignPeer(t *testing.T) {
	type ran struct {
		Command         string `json:"command"`
		ExitCode        int    `json:"exit_code"`
		Stdout          string `json:"stdout"`
		Stderr          string `json:"stderr"`
		StdoutTruncated bool   `json:"stdout_truncated"`
		StderrTruncated bool   `json:"stderr_truncated"`
	}
	f := newFar()
	all := ran{Command: "c", ExitCode: 3, Stdout: strings.Repeat("ä", 10), Stderr: "error"}
	f.says(wire.MethodExecute, tool.Result{
		Content:           []tool.Part{{Type: tool.PartText, Text: all.Stdout + all.Stderr}},
		StructuredContent: object(encoded(t, all)),
	}, nil)
	e := open(t, f, binding(), Options{})
	for _, test := range []struct {
		most int64
		want ran
		text string
	}{
		{0, all, all.Stdout + all.Stderr},
		{25, all, all.Stdout + all.Stderr},
		{23, ran{"c", 3, all.Stdout, "err", false, true}, all.Stdout + "err"},
		{3, ran{"c", 3, "ä", "e", true, true}, "ä"},
		{1, ran{"c", 3, "", "e", true, true}, ""},
	} {
		got, err := e.Call(t.Context(), tool.Request{Name: "bash", MaxOutputBytes: test.most})
		if err != nil {
			t.Fatal(err)
		}
		var r ran
		if err := json.Unmarshal(got.StructuredContent, &r); err != nil || r != test.want || got.Content[0].Text != test.text {
			t.Errorf("%d: %+v %q, %v; want %+v %q", test.most, r, got.Content[0].Text, err, test.want, test.text)
		}
	}
	// What is no command's output is left alone.
	f.says(wire.MethodExecute, tool.Result{StructuredContent: object(`{"content":"a long text"}`)}, nil)
	got, err := e.Call(t.Context(), tool.Request{Name: "read_file", MaxOutputBytes: 1})
	if err != nil || string(got.StructuredContent) != `{"content":"a long text"}` {
		t.Errorf("%s, %v", got.StructuredContent, err)
	}
}
