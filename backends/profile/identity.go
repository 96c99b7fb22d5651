package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/tool"
)

// identityFormat is the version of what the hash of an identity covers. Another
// version gives every environment another identity: those that exist are then
// reached by the sessions that are bound to them only.
const identityFormat = 1

// IdentityPrefix begins every identity.
const IdentityPrefix = "caisson-"

// Identity names the environment that a session on the profile has: "caisson-"
// and 32 hex digits. It covers the state store, the session unless the profile
// is shared, and what makes the environment what it is, as the user wrote it;
// [Profile.InFolder] and [Profile.Constrain] come before it.
func (p Profile) Identity(store, session string) string {
	if p.Shared {
		session = ""
	}
	covered, err := json.Marshal(struct {
		Format  int                        `json:"format"`
		Store   string                     `json:"store"`
		Shared  bool                       `json:"shared"`
		Session string                     `json:"session"`
		Profile string                     `json:"profile"`
		Backend string                     `json:"backend"`
		Members map[string]json.RawMessage `json:"members"`
	}{identityFormat, store, p.Shared, session, p.Name, p.Backend, p.Written})
	canonical := jsontext.Value(covered)
	if err == nil {
		err = canonical.Canonicalize()
	}
	if err != nil {
		// Written holds nothing but values that Parse canonicalised.
		panic("profile: identity of an invalid profile: " + err.Error())
	}
	sum := sha256.Sum256(canonical)
	return IdentityPrefix + hex.EncodeToString(sum[:16])
}

// IsIdentity reports whether s has the form of an identity.
func IsIdentity(s string) bool {
	if len(s) != len(IdentityPrefix)+32 || s[:len(IdentityPrefix)] != IdentityPrefix {
		return false
	}
	for _, c := range s[len(IdentityPrefix):] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// set writes a member that a constraint or the opened folder decides.
func (p *Profile) set(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return tool.Errorf(tool.Internal, "profile %q: member %s: %w", p.Name, name, err)
	}
	written := make(map[string]json.RawMessage, len(p.Written)+1)
	for k, v := range p.Written {
		written[k] = v
	}
	p.Written = written
	if bad := p.write(name, raw); bad != nil {
		return tool.Errorf(tool.Internal, "profile %q: %w", p.Name, bad)
	}
	return nil
}
