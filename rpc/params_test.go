package rpc

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// FuzzParams holds for any JSON: a value that was asked for, or an error that
// is a bad parameter; never a panic.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"sessionId":"s","name":"n","arguments":{}}`, `{"sessionId":1}`, `[]`, `null`, `{"arguments":{"a":1,"a":2}}`,
		`{"sessionId":"s","name":"n","arguments":{},"actor":{"id":"a","kind":"main"},"constraints":{"timeout":"30s","memory":"1g","cpus":0.5}}`,
		`{"sessionId":"s","name":"n","arguments":{},"constraints":{"scope":"x"}}`, `{"actor":null}`, `{"constraints":{"tmpfsNoexec":null}}`,
		`{"sessionId":"\ud800"}`, `{"workDoneToken":1.5}`, `{"":{}}`, `{"a/b~c":1}`,
	} {
		f.Add([]byte(seed))
	}
	decode := paramsDecoder[protocol.ToolCallParams]()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // such frames do not come this far
		}
		params, session, err := decode(raw)
		if err != nil {
			var e *tool.Error
			if !errors.As(err, &e) || e.Kind != tool.InvalidParams || e.Message == "" {
				t.Fatalf("%s gives %#v", raw, err)
			}
			return
		}
		if params.SessionID != session || len(params.Arguments) == 0 || params.Arguments[0] != '{' {
			t.Fatalf("%s gives %+v", raw, params)
		}
	})
}

func TestRequestID(t *testing.T) {
	for text, ok := range map[string]bool{`7`: true, `-7`: true, `"a"`: true, `"7"`: true, `1.5`: false, `{}`: false, `null`: false, ``: false} {
		_, err := requestID(protocol.Token(text))
		if (err == nil) != ok {
			t.Errorf("%s gives %v", text, err)
		}
	}
	number, _ := requestID("7")
	word, _ := requestID(`"7"`)
	if number == word {
		t.Error("a number and its text are the same id")
	}
}
