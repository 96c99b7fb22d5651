package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestRefuse(t *testing.T) {
	why := &tool.Error{Kind: tool.Denied, Message: "no", Hint: "ask"}
	const detailed = `{"id":"7","error":"no","detail":{"kind":"denied","hint":"ask"}}` + "\n"
	for name, test := range map[string]struct{ asks, told string }{
		"a host":              {`{"id":"7","method":"initialize","data":{"version":4,"capabilities":["caisson.errors.v1"]}}` + "\n", detailed},
		"one without details": {`{"id":"7","method":"initialize","data":{"version":4}}` + "\n", `{"id":"7","error":"no"}` + "\n"},
		"anything else":       {`{"id":"x","method":"execute","data":[]}` + "\n" + `{"id":"y"}` + "\n", `{"id":"x","error":"no"}` + "\n"},
		"no id":               {`{"method":"initialize"}` + "\n", ""},
		"no frame":            {"GET / HTTP/1.1\n", ""},
		"half a frame":        {`{"id":"7"`, ""},
		"too long":            {`{"id":"7","method":"` + strings.Repeat("x", MaxRefused) + `"}` + "\n", ""},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told strings.Builder
			err := Refuse(struct {
				io.Reader
				io.Writer
			}{strings.NewReader(test.asks), &told}, why, MaxRefused)
			if told.String() != test.told || (err == nil) != (test.told != "") {
				t.Errorf("told %q, want %q; %v", told.String(), test.told, err)
			}
		})
	}
	// The longest initialize of ours is answered.
	var told strings.Builder
	in := Initialize{Version: 4, Environment: map[string]string{"X": strings.Repeat("x", 1<<20)}, Capabilities: []string{CapErrors}}
	data, err := appendJSON(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	err = Refuse(struct {
		io.Reader
		io.Writer
	}{strings.NewReader(`{"id":"7","method":"initialize","data":` + string(data) + "}\n"), &told}, why, MaxRefused)
	if err != nil || told.String() != detailed {
		t.Error(errors.Join(err, errors.New(told.String())))
	}
}
