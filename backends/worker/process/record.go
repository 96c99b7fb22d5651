package process

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/tool"
)

// record is what is on disk about a process: what everybody sees, and what
// only a later worker needs.
type record struct {
	tool.Process
	// Identity tells whether the pid is still this process's.
	Identity identity `json:"identity"`
	// Request is a digest of the start request. The environment in it may be
	// secret, so the request itself is not kept; the id is the digest's salt.
	Request string `json:"request,omitempty"`
	// Delivered is stored for peers that use it.
	Delivered bool `json:"completion_delivered,omitempty"`
	// Gone is a record that was cleaned up.
	Gone bool `json:"gone,omitempty"`
}

// appendJSON appends the record's JSON.
func (r *record) appendJSON(b []byte) []byte {
	b = r.AppendJSON(b)
	b = b[:len(b)-1] // it goes on
	b = strconv.AppendUint(append(b, `,"identity":{"start":`...), r.Identity.Start, 10)
	text := func(name, value string) {
		if value != "" {
			b, _ = jsontext.AppendQuote(append(b, name...), value)
		}
	}
	text(`,"boot":`, r.Identity.Boot)
	text(`,"pid_namespace":`, r.Identity.Namespace)
	b = append(b, '}')
	text(`,"request":`, r.Request)
	if r.Delivered {
		b = append(b, `,"completion_delivered":true`...)
	}
	if r.Gone {
		b = append(b, `,"gone":true`...)
	}
	return append(b, '}')
}

// digest identifies a request of a process without disclosing it.
func digest(id string, r tool.StartRequest) (string, error) {
	b, err := json.Marshal(r) // maps are sorted, so equal requests have equal text
	if err != nil {
		return "", fmt.Errorf("encode the request: %w", err)
	}
	h := sha256.New()
	h.Write([]byte(id))
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)), nil
}
