package connection

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/tool"
)

// The methods of authentication, as the protocol names them.
const (
	publicKey           = "publickey"
	password            = "password"
	keyboardInteractive = "keyboard-interactive"
	gssapi              = "gssapi-with-mic"
	hostBased           = "hostbased"
)

// authenticator offers a host one key after the other, and remembers what came
// of it. It is used by one handshake.
type authenticator struct {
	hop *hop
	offers
	next int
	// methods are what the host last said it would take; partial what it has
	// taken, when that was not enough.
	methods, partial []string
	// wanted is the key that the host asked to sign with and that could not.
	wanted *identity
	failed error
}

// method is the callback of the handshake: the key to offer next.
func (a *authenticator) method(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	a.methods, a.partial = c.AllowedMethods, c.PartialSuccessMethods
	if a.next == len(a.keys) || !slices.Contains(a.methods, publicKey) {
		return nil, nil // there is nothing else: the handshake ends
	}
	key := &a.keys[a.next]
	a.next++
	signer := watched{key: key, a: a}
	return ssh.PublicKeys(signer), nil
}

// watched is a signer that notes why it could not sign when it had to.
type watched struct {
	key *identity
	a   *authenticator
}

// PublicKey is the key's public half.
func (w watched) PublicKey() ssh.PublicKey { return w.key.public }

// Sign signs with the key's own algorithm.
func (w watched) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return w.SignWithAlgorithm(rand, data, "")
}

// SignWithAlgorithm signs, unless the key cannot.
func (w watched) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	signature, err := w.sign(rand, data, algorithm)
	if err != nil && w.a.wanted == nil {
		w.a.wanted, w.a.failed = w.key, err
	}
	return signature, err
}

func (w watched) sign(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if w.key.signer == nil {
		return nil, w.key.why
	}
	if s, ok := w.key.signer.(ssh.AlgorithmSigner); ok {
		return s.SignWithAlgorithm(rand, data, algorithm)
	}
	return w.key.signer.Sign(rand, data)
}

// Algorithms are those that the key may sign with.
func (w watched) Algorithms() []string {
	if s, ok := w.key.signer.(ssh.MultiAlgorithmSigner); ok {
		return s.Algorithms()
	}
	if kind := plainKey(w.key.public).Type(); kind != ssh.KeyAlgoRSA {
		return []string{kind}
	}
	return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
}

// authError is an authentication that failed for good.
type authError struct {
	a     *authenticator
	cause error
}

func (e *authError) Unwrap() error { return e.cause }

// Error says what was offered and what the host would rather have had.
func (e *authError) Error() string {
	if e.a.mute != nil {
		return fmt.Sprintf("%s; the ssh agent cannot be asked: %v", e.refusal(), e.a.mute)
	}
	return e.refusal()
}

func (e *authError) refusal() string {
	a := e.a
	host := a.hop.String()
	takes := ""
	if len(a.methods) > 0 {
		takes = "; it takes " + strings.Join(a.methods, ", ")
	}
	switch {
	case len(a.partial) > 0:
		return fmt.Sprintf("%s accepts %s and then wants a second factor (%s)", host, strings.Join(a.partial, ", "), strings.Join(a.methods, ", "))
	case a.wanted != nil && errors.Is(a.failed, errEncrypted):
		return fmt.Sprintf("%s would accept the key %s, but it is encrypted and no ssh agent holds it", host, a.wanted)
	case a.wanted != nil && errors.Is(a.failed, errOpen):
		return fmt.Sprintf("%s would accept the key %s, but it is not used, as with ssh: %v", host, a.wanted, a.failed)
	case a.wanted != nil && errors.Is(a.failed, errHardware):
		return fmt.Sprintf("%s would accept the key %s, but it is in a security key that no ssh agent holds", host, a.wanted)
	case a.wanted != nil && errors.Is(a.failed, errPublic):
		return fmt.Sprintf("%s would accept the key %s, but only its public half is there and no ssh agent holds it", host, a.wanted)
	case a.wanted != nil:
		return fmt.Sprintf("%s would accept the key %s, but signing with it failed: %v", host, a.wanted, a.failed)
	case len(a.methods) > 0 && !slices.Contains(a.methods, publicKey):
		return fmt.Sprintf("%s does not take keys%s", host, takes)
	case len(a.keys) == 0:
		return fmt.Sprintf("there is no key to offer to %s%s%s", host, takes, a.without())
	case a.next < len(a.keys) && strings.Contains(e.cause.Error(), "oo many"):
		return fmt.Sprintf("%s has hung up after %d of %d keys that it does not accept", host, a.next, len(a.keys))
	default:
		var offered []string
		for _, key := range a.keys {
			offered = append(offered, key.String()+key.flaw(a.hop.User, time.Now()))
		}
		return fmt.Sprintf("%s accepts none of the keys %s%s%s", host, strings.Join(offered, ", "), takes, a.without())
	}
}

// without says which of the configured keys were not offered.
func (a *authenticator) without() string {
	if len(a.left) == 0 {
		return ""
	}
	var files []string
	for _, u := range a.left {
		files = append(files, u.String())
	}
	return "; of the configured keys these cannot be used: " + strings.Join(files, ", ")
}

// public is the error as it leaves this room.
func (e *authError) public() *tool.Error {
	a := e.a
	out := &tool.Error{Kind: tool.BackendUnavailable, Message: e.Error(), Err: e}
	switch {
	case len(a.partial) > 0:
		return out.WithHint("nobody can be asked here: set SSH_ASKPASS to a program that asks, or have the machine accept the key alone")
	case a.wanted != nil && errors.Is(a.failed, errEncrypted):
		return out.WithHint("add it to the agent of the session that this service runs in: ssh-add %s (without an agent: eval \"$(ssh-agent -s)\" first, and start the service from there)", Quote(a.wanted.source))
	case a.wanted != nil && errors.Is(a.failed, errOpen):
		return out.WithHint("make it yours alone: chmod 600 %s; where somebody else may have read it, make a new key", Quote(a.wanted.source))
	case a.wanted != nil && (errors.Is(a.failed, errHardware) || errors.Is(a.failed, errPublic)):
		return out.WithHint("add it to the ssh agent: ssh-add %s", Quote(strings.TrimSuffix(a.wanted.source, ".pub")))
	case a.wanted != nil && a.wanted.source == agentSource:
		return out.WithHint("see whether the ssh agent, or the device that has the key, waits for leave to use it: ssh -v %s shows where it stops", Quote(a.hop.Name))
	case a.wanted != nil:
		return out.WithHint("see whether the ssh agent asks for leave to use the key; ssh-add -T %s tries it", Quote(a.wanted.source))
	case !slices.Contains(a.methods, publicKey) && len(a.methods) > 0:
		return out.WithHint("have PubkeyAuthentication switched on in the machine's sshd_config, and %s; or set SSH_ASKPASS to a program that asks for what the machine wants", a.hop.setUpKey())
	case a.next < len(a.keys):
		return out.WithHint("name the right key with IdentityFile and set IdentitiesOnly yes in the ssh configuration")
	case len(a.keys) == 0 && slices.ContainsFunc(a.left, func(u unusable) bool { return !u.missing() }):
		return out.WithHint("see to that file, or name another key with IdentityFile in the ssh configuration")
	default:
		return out.WithHint("%s", a.hop.setUpKey())
	}
}

// setUpKey says how a key is set up for h.
func (h *hop) setUpKey() string {
	file := defaultIdentity + "ed25519"
	if own := h.ownIdentity(); own != "" {
		file = Quote(own)
	}
	args := []string{}
	if f := h.Asked.ConfigFile; f != "" {
		args = append(args, "-F", f)
	}
	if h.Port != 22 {
		args = append(args, "-p", fmt.Sprint(h.Port))
	}
	options := ""
	if len(args) > 0 {
		options = Quote(args...) + " "
	}
	return fmt.Sprintf("set up a key: ssh-keygen -t ed25519 -f %s makes one unless it is there, ssh-copy-id -i %s.pub %s%s gives it to the machine",
		file, file, options, Quote(h.User+"@"+h.Name))
}

// ownIdentity is the first file of a key that the profile or the configuration names
// for h, if one does: another one would not be offered.
func (h *hop) ownIdentity() string {
	if h.Asked.IdentityFile != "" {
		return h.Asked.IdentityFile
	}
	for _, path := range h.Settings["identityfile"] {
		if strings.HasPrefix(path, defaultIdentity) || path == "" || strings.EqualFold(path, "none") {
			continue
		}
		if file, err := h.expand(path); err == nil {
			return strings.TrimSuffix(file, ".pub")
		}
	}
	return ""
}

// openSSHMay reports whether OpenSSH has a way to authenticate that was refused
// here, or not tried.
func (e *authError) openSSHMay() bool {
	s := e.a.hop.Settings
	if errors.Is(e.a.failed, errHardware) {
		return true
	}
	for _, method := range e.a.methods {
		switch method {
		case gssapi:
			if s.yes("gssapiauthentication") && hasTicket() {
				return true
			}
		case hostBased:
			if s.yes("hostbasedauthentication") {
				return true
			}
		case keyboardInteractive:
			if askpass() && !no(s.get("kbdinteractiveauthentication")) {
				return true
			}
		case password:
			if askpass() && !no(s.get("passwordauthentication")) {
				return true
			}
		}
	}
	return errors.Is(e.a.failed, errEncrypted) && askpass()
}

func no(value string) bool {
	return strings.EqualFold(value, "no") || strings.EqualFold(value, "false")
}

// askpass reports whether the user has a program that asks for passwords
// without a terminal.
func askpass() bool {
	if os.Getenv("SSH_ASKPASS") == "" {
		return false
	}
	switch os.Getenv("SSH_ASKPASS_REQUIRE") {
	case "never":
		return false
	case "force", "prefer":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// hasTicket reports whether there may be a Kerberos ticket: Debian switches
// GSSAPI on for everybody, and nearly nobody has one.
func hasTicket() bool {
	return os.Getenv("KRB5CCNAME") != "" || isFile(fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()))
}
