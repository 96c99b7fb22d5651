package rpc

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// codec writes results and parameters. What is encoded already is passed on as
// it is; text that is not UTF-8 comes out with U+FFFD rather than as an error.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok {
		return raw, nil
	}
	return json.Marshal(v, jsontext.AllowInvalidUTF8(true))
}

func (codec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
