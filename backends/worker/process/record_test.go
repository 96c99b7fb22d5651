package process

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestRecordAppendJSON(t *testing.T) {
	full := record{
		Process: tool.Process{
			ID: "p-1", Command: "a \"<b>\"\n", Argv: []string{"x", ""}, StartedAt: time.Now().UTC(), Label: "l",
		},
		Identity: identity{Start: 1 << 63, Boot: "b", Namespace: "pid:[1]"},
		Request:  "r", Delivered: true, Gone: true,
	}
	for _, rec := range []record{{}, full} {
		var back record
		if err := json.Unmarshal(rec.appendJSON(nil), &back); err != nil {
			t.Fatalf("%v: %s", err, rec.appendJSON(nil))
		}
		if !reflect.DeepEqual(back, rec) {
			t.Errorf("%+v became %+v", rec, back)
		}
	}
}
