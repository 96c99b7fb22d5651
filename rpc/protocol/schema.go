package protocol

import _ "embed"

//go:generate go run ../../cmd/generate -root ../..

//go:embed protocol.schema.json
var schema string

// Schema is the JSON Schema of the whole protocol, generated from this package.
func Schema() string { return schema }
