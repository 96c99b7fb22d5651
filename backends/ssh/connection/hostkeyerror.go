package connection

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A problem is what is wrong with a host's key.
type problem int

const (
	// keyUnknown is a host of which nothing is known.
	keyUnknown problem = iota
	// keyOther is a host of which only keys of other types are known.
	keyOther
	// keyChanged is a host of which another key of the type is known.
	keyChanged
	// keyRevoked is a key that somebody has marked so.
	keyRevoked
	// keyInvalid is a key, or a certificate, that is not good enough.
	keyInvalid
)

// hostKeyError is a host key that was refused.
type hostKeyError struct {
	hop     *hop
	problem problem
	// shown is the type and the fingerprint of what the machine shows.
	shown string
	lines []knownLine
	files []string
	why   error
	// over is the host from which hop is reached, if it is not this one.
	over *hop
}

// Error says which key was expected and which was shown.
func (e *hostKeyError) Error() string {
	host, shown := e.hop.String(), e.shown
	switch e.problem {
	case keyChanged:
		return fmt.Sprintf("the host key of %s has changed: %s, but the machine shows %s", host, e.expected(), shown)
	case keyOther:
		return fmt.Sprintf("the host key of %s is not known: %s, but the machine shows %s", host, e.expected(), shown)
	case keyRevoked:
		return fmt.Sprintf("the host key of %s is revoked: %s says so of %s", host, e.lines[0], shown)
	case keyInvalid:
		if len(e.lines) > 0 {
			return fmt.Sprintf("the host key of %s is refused: %v (%s; the machine shows %s)", host, e.why, e.expected(), shown)
		}
		return fmt.Sprintf("the host key of %s is refused: %v (the machine shows %s)", host, e.why, shown)
	default:
		where := "there is no file of known hosts"
		if len(e.files) > 0 {
			where = "it is not in " + strings.Join(e.files, ", ")
		}
		return fmt.Sprintf("the host key of %s is not known: the machine shows %s; %s", host, shown, where)
	}
}

// expected is what the lines hold.
func (e *hostKeyError) expected() string {
	var parts []string
	for _, l := range e.lines {
		parts = append(parts, fmt.Sprintf("%s has %s", l, describe(l.key)))
	}
	return strings.Join(parts, ", ")
}

// describe is a key's type and fingerprint.
func describe(key ssh.PublicKey) string {
	return key.Type() + " " + ssh.FingerprintSHA256(key)
}

// verify is the command that shows the fingerprints of what listens there.
func (e *hostKeyError) verify() string {
	scan := "ssh-keyscan -p " + fmt.Sprint(e.hop.Port) + " " + Quote(e.hop.Host)
	if e.over != nil {
		scan = e.over.sshCommand() + " " + Quote(scan)
	}
	return scan + " | ssh-keygen -lf -"
}

// public is the error as it leaves this room.
func (e *hostKeyError) public() *tool.Error {
	out := &tool.Error{Kind: tool.BackendUnavailable, Message: e.Error(), Err: e}
	if len(e.lines) > 0 {
		out.Path = e.lines[0].file
	} else if len(e.files) > 0 {
		out.Path = e.files[0]
	}
	connect := e.hop.sshCommand()
	switch e.problem {
	case keyChanged, keyInvalid:
		if len(e.lines) == 0 || e.lines[0].marker != "" {
			return out.WithHint("ask whoever runs the machine; %s shows the keys that it has", e.verify())
		}
		return out.WithHint("somebody may be listening in. Compare what %s shows with what whoever runs the machine says; only if that is the same, remove the old key by ssh-keygen -f %s -R %s, run %s once and accept the new one",
			e.verify(), Quote(e.lines[0].file), Quote(e.hop.knownAs()), connect)
	case keyRevoked:
		return out.WithHint("do not connect; ask whoever runs the machine. %s shows the keys that it has", e.verify())
	default:
		if e.hop.keepsNoKeys() {
			file := filepath.Join(e.hop.me.home, ".ssh", "known_hosts")
			return out.WithHint("the ssh configuration keeps no keys (UserKnownHostsFile). Compare what %s shows with what whoever runs the machine says; if that is the same, run %s once, accept the key, and name the file by known_hosts_file in the profile",
				e.verify(), e.hop.sshCommand("-o", "StrictHostKeyChecking=ask", "-o", "UserKnownHostsFile="+file))
		}
		return out.WithHint("compare what %s shows with what whoever runs the machine says; if that is the same, run %s once and accept the key", e.verify(), connect)
	}
}

// keepsNoKeys reports whether ssh would forget a key of h that was accepted: it writes
// those into the user's first file.
func (h *hop) keepsNoKeys() bool {
	if h.Asked.KnownHostsFile != "" {
		return false
	}
	files := h.Settings.paths("userknownhostsfile", isFile)
	return len(files) == 0 || files[0] == os.DevNull
}
