package command

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/program"
)

// tail keeps the end of what an adapter prints to standard error, and gives it
// back without the secrets that the adapter was told.
type tail struct {
	program.Tail
	secrets secrets
}

// secrets are what no error may show: each as it stands and as JSON has it,
// longest first.
type secrets [][]byte

func newSecrets(values []string) secrets {
	var all secrets
	for _, s := range values {
		for _, line := range append([]string{s}, strings.Split(s, "\n")...) {
			if line = strings.TrimSpace(line); len(line) < minSecret {
				continue
			}
			all = append(all, []byte(line))
			if quoted, err := json.Marshal(line); err == nil && len(quoted) != len(line)+2 {
				all = append(all, quoted[1:len(quoted)-1])
			}
		}
	}
	slices.SortFunc(all, func(a, b []byte) int { return len(b) - len(a) })
	return all
}

// clean is data without the secrets.
func (all secrets) clean(data []byte) []byte {
	for _, s := range all {
		data = bytes.ReplaceAll(data, s, []byte("[secret]"))
	}
	return data
}

// redact is text without the secrets.
func (all secrets) redact(text string) string { return string(all.clean([]byte(text))) }

// newTail makes a tail. More than is shown is kept, so that a secret that begins
// before what is shown is known for what it is.
func newTail(s secrets) *tail {
	t := &tail{program.Tail{Max: stderrBytes}, s}
	if len(s) > 0 {
		t.Max += len(s[0])
	}
	return t
}

// clean is what was kept, from where on no secret has lost its beginning, and
// without secrets.
func (t *tail) clean() []byte {
	kept, cut := t.Bytes()
	start := 0
	// Where it was cut may be within a secret.
	for cut && start < t.Max-stderrBytes && start < len(kept) {
		start += max(1, t.secretAt(kept[start:]))
	}
	data := t.secrets.clean(kept[start:])
	return data[max(0, len(data)-stderrBytes):]
}

// secretAt is the length of the secret that data begins with, else 0.
func (t *tail) secretAt(data []byte) int {
	for _, s := range t.secrets {
		if bytes.HasPrefix(data, s) {
			return len(s)
		}
	}
	return 0
}

// String is the end of what was kept, at most [stderrBytes] long, as text
// without control characters.
func (t *tail) String() string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(t.clean()), "�"))
	return strings.TrimSpace(text)
}
