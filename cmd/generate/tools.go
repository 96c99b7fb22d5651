package main

import (
	"encoding/json"

	"github.com/caisson-dev/caisson/backends/worker/tools"
)

// toolsPackage describes the built-in tools as tool/list does, for clients that have
// to know them before a session is open.
const toolsPackage = "editor-extension/packages/protocol/tools.json"

// builtInTools makes that file.
func builtInTools() ([]byte, error) {
	type annotations struct {
		ReadOnly    bool `json:"readOnly"`
		Destructive bool `json:"destructive"`
	}
	type description struct {
		Name        string          `json:"name"`
		Group       string          `json:"group"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations annotations     `json:"annotations"`
	}
	var all []description
	for _, d := range tools.Descriptions() {
		all = append(all, description{
			d.Name, string(d.Group), d.Description, d.InputSchema,
			annotations{d.Annotations.ReadOnly, d.Annotations.Destructive},
		})
	}
	return encode(all)
}
