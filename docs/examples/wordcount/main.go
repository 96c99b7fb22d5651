// Wordcount is a registered tool: a WASI command that answers two actions, JSON on
// standard input and JSON on standard output. docs/tools.md walks through it.
//
//	GOOS=wasip1 GOARCH=wasm go build -o wordcount.wasm .
//	caisson tools register wordcount.wasm
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// tools is the answer to the action list: what a model reads to choose, and a JSON
// Schema that Caisson checks arguments against before it calls.
const tools = `{"tools": [{
	"name": "word_count",
	"description": "Count the words and lines of a text, or of a file of the workspace. With out, write the counts to that file too.",
	"input_schema": {
		"type": "object",
		"additionalProperties": false,
		"properties": {
			"text": {"type": "string"},
			"path": {"type": "string", "minLength": 1},
			"out": {"type": "string", "minLength": 1, "description": "a file for the counts"}
		},
		"oneOf": [{"required": ["text"]}, {"required": ["path"]}]
	}
}]}`

type request struct {
	Action    string
	Name      string
	Arguments struct{ Text, Path, Out string }
}

type counts struct {
	Words int `json:"words"`
	Lines int `json:"lines"`
}

func main() {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		answer(map[string]any{"ok": false, "error": err.Error()})
		return
	}
	switch r.Action {
	case "list":
		fmt.Println(tools)
	case "run":
		n, err := count(r)
		if err != nil {
			answer(map[string]any{"ok": false, "error": err.Error()})
			return
		}
		answer(map[string]any{"ok": true, "result": n})
	}
}

func count(r request) (counts, error) {
	text := r.Arguments.Text
	if r.Arguments.Path != "" {
		data, err := os.ReadFile(r.Arguments.Path)
		if err != nil {
			return counts{}, err
		}
		text = string(data)
	}
	n := counts{Words: len(strings.Fields(text)), Lines: strings.Count(text, "\n")}
	if r.Arguments.Out == "" {
		return n, nil
	}
	return n, os.WriteFile(r.Arguments.Out, fmt.Appendf(nil, "%d words\n%d lines\n", n.Words, n.Lines), 0o644)
}

func answer(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
