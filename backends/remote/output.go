package remote

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
)

// limitOutput keeps a command's result to most bytes of output, 0 for no limit, for
// a far end that knows no limits and sends all it has. The beginning stays.
func limitOutput(r tool.Result, most int64) (tool.Result, error) {
	if most <= 0 || int64(len(r.StructuredContent)) <= most && textSize(r) <= most {
		return r, nil
	}
	var members map[string]json.RawMessage
	var stdout, stderr string
	if json.Unmarshal(r.StructuredContent, &members) != nil ||
		json.Unmarshal(members["stdout"], &stdout) != nil || json.Unmarshal(members["stderr"], &stderr) != nil {
		return r, nil // no command's
	}
	if int64(len(stdout)+len(stderr)) > most {
		cutOut := head(stdout, most)
		cutErr := head(stderr, most-int64(len(cutOut)))
		for name, value := range map[string]any{
			"stdout": cutOut, "stderr": cutErr,
			"stdout_truncated": len(cutOut) < len(stdout) || isTrue(members["stdout_truncated"]),
			"stderr_truncated": len(cutErr) < len(stderr) || isTrue(members["stderr_truncated"]),
		} {
			raw, err := json.Marshal(value)
			if err != nil {
				return r, err
			}
			members[name] = raw
		}
		raw, err := json.Marshal(members)
		if err != nil {
			return r, err
		}
		r.StructuredContent = raw
	}
	// Its texts say the same.
	left := most
	for i := range r.Content {
		if p := &r.Content[i]; p.Type == tool.PartText {
			p.Text = head(p.Text, left)
			left -= int64(len(p.Text))
		}
	}
	return r, nil
}

func textSize(r tool.Result) (size int64) {
	for _, p := range r.Content {
		if p.Type == tool.PartText {
			size += int64(len(p.Text))
		}
	}
	return size
}

// head is the head of s of at most most bytes, which ends on a character.
func head(s string, most int64) string {
	if int64(len(s)) <= most {
		return s
	}
	cut := max(0, most)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }
