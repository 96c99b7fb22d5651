package connection

import (
	"os"
	"strings"
)

// variable is an environment variable that sessions are given, if the server
// lets them have it.
type variable struct{ Name, Value string }

// environment is what SendEnv and SetEnv say.
func (h *hop) environment() []variable {
	var out []variable
	set := make(map[string]bool)
	for _, line := range h.Settings["setenv"] {
		if name, value, ok := strings.Cut(line, "="); ok && !set[name] {
			set[name] = true
			out = append(out, variable{name, value})
		}
	}
	for _, line := range h.Settings["sendenv"] {
		for pattern := range strings.FieldsSeq(line) {
			for _, entry := range os.Environ() {
				name, value, ok := strings.Cut(entry, "=")
				if ok && !set[name] && matchWild(pattern, name) {
					set[name] = true
					out = append(out, variable{name, value})
				}
			}
		}
	}
	return out
}
