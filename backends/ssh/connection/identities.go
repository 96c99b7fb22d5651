package connection

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Why a key that is there cannot sign.
var (
	errEncrypted = errors.New("it is encrypted")
	errHardware  = errors.New("it is in a security key")
	errPublic    = errors.New("only its public half is there")
	errOpen      = errors.New("others may read or write its file")
)

// defaultIdentity begins the names of the files that ssh tries where none is
// configured.
const defaultIdentity = "~/.ssh/id_"

// unusable is a configured file that no key could be read from, and why.
type unusable struct {
	file string
	err  error
}

func (u unusable) String() string {
	var path *fs.PathError
	switch {
	case u.missing():
		return u.file + " is not there"
	case errors.As(u.err, &path) && path.Path == u.file:
		return u.file + ": " + path.Err.Error()
	case strings.HasPrefix(u.err.Error(), u.file):
		return u.err.Error()
	}
	return u.file + ": " + u.err.Error()
}

func (u unusable) missing() bool { return errors.Is(u.err, os.ErrNotExist) }

// agentSource is the source of what an agent holds.
const agentSource = "agent"

// identity is a key that may be offered.
type identity struct {
	// source is the file, or the agent.
	source string
	public ssh.PublicKey
	signer ssh.Signer // nil: see why
	why    error
}

func (i identity) String() string { return describe(i.public) + " (" + i.source + ")" }

// flaw says why a host is likely to refuse a certificate for user.
func (i identity) flaw(user string, now time.Time) string {
	c, ok := i.public.(*ssh.Certificate)
	if !ok {
		return ""
	}
	second := uint64(max(0, now.Unix())) //nolint:gosec // not negative
	date := func(second uint64) string {
		return time.Unix(int64(min(second, math.MaxInt64)), 0).UTC().Format(time.RFC3339) //nolint:gosec // not more
	}
	switch {
	case c.CertType != ssh.UserCert:
		return ", which is no user's certificate"
	case second >= c.ValidBefore:
		return ", which has expired on " + date(c.ValidBefore)
	case second < c.ValidAfter:
		return ", which is valid from " + date(c.ValidAfter) + " on"
	case len(c.ValidPrincipals) > 0 && !slices.Contains(c.ValidPrincipals, user):
		return ", which is for " + strings.Join(c.ValidPrincipals, ", ")
	}
	return ""
}

// offers are the keys for a host.
type offers struct {
	// keys are in the order in which ssh offers them: certificates, what the agent
	// holds of the configured keys, what else it holds, and the keys that are in files
	// alone. Keys that cannot sign come last: being asked to is how one learns that
	// the server would take them.
	keys []identity
	// left are the configured files that give none.
	left []unusable
	// mute is why the agent could not be asked, as with ssh no reason to give up.
	mute error
	// agent, unless nil, is the connection to it, which signing needs.
	agent io.Closer
}

// close ends the connection to the agent.
func (o offers) close() {
	if o.agent != nil {
		o.agent.Close()
	}
}

// identities are the keys for a host, which are to be closed.
func identities(ctx context.Context, h *hop, log *slog.Logger) (offers, error) {
	files, certificates, left, err := identityFiles(h, log)
	if err != nil {
		return offers{}, err
	}
	held, closer, mute := agentKeys(ctx, h)
	if mute != nil {
		log.Debug("the ssh agent does not answer", "host", h.String(), "error", mute)
	}
	signers := append(slices.Clone(held), files...)
	var certified, first, others, alone, last []identity
	for _, c := range certificates {
		for _, s := range signers {
			if s.signer == nil || !sameKey(s.public, c.certificate.Key) {
				continue
			}
			signer, err := ssh.NewCertSigner(c.certificate, s.signer)
			if err != nil {
				log.Debug("a certificate does not fit its key", "file", c.file, "error", err)
				continue
			}
			certified = append(certified, identity{source: c.file, public: c.certificate, signer: signer})
			break
		}
	}
	configured := func(key ssh.PublicKey) bool {
		return slices.ContainsFunc(files, func(f identity) bool { return sameKey(f.public, key) })
	}
	for _, k := range held {
		if configured(k.public) {
			first = append(first, k)
		} else if !h.Settings.yes("identitiesonly") {
			others = append(others, k)
		}
	}
	for _, f := range files {
		switch {
		case slices.ContainsFunc(held, func(k identity) bool { return sameKey(k.public, f.public) }):
		case f.signer != nil:
			alone = append(alone, f)
		default:
			last = append(last, f)
		}
	}
	out := offers{left: left, mute: mute, agent: closer}
	for _, i := range slices.Concat(certified, first, others, alone, last) {
		if i, ok := h.accepted(i); ok {
			out.keys = append(out.keys, i)
		} else if i.source != agentSource {
			out.left = append(out.left, unusable{i.source, fmt.Errorf("%s is not among PubkeyAcceptedAlgorithms", i.public.Type())})
		}
	}
	return out, nil
}

// certificateFile is a certificate and where it is from.
type certificateFile struct {
	file        string
	certificate *ssh.Certificate
}

// identityFiles reads the keys and certificates in files, and says of which it
// cannot.
func identityFiles(h *hop, log *slog.Logger) ([]identity, []certificateFile, []unusable, error) {
	var keys []identity
	var left []unusable
	var certificates []certificateFile
	addCertificate := func(file string) {
		key, err := readPublic(file)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				log.Debug("a certificate cannot be read", "file", file, "error", err)
			}
			return
		}
		if c, ok := key.(*ssh.Certificate); ok {
			certificates = append(certificates, certificateFile{file, c})
		}
	}
	for _, path := range h.Settings["certificatefile"] {
		if strings.EqualFold(path, "none") {
			continue
		}
		file, err := h.expand(path)
		if err != nil {
			return nil, nil, nil, invalid("CertificateFile of %s: %v", h.Name, err)
		}
		addCertificate(file)
	}
	for _, path := range h.Settings["identityfile"] {
		if strings.EqualFold(path, "none") || path == "" {
			continue
		}
		var file string
		asked := h.Asked.IdentityFile != "" && (path == h.Asked.IdentityFile || path == escapeTokens(h.Asked.IdentityFile))
		if asked {
			file = h.Asked.IdentityFile
		} else {
			var err error
			if file, err = h.expand(path); err != nil {
				return nil, nil, nil, invalid("IdentityFile of %s: %v", h.Name, err)
			}
		}
		key, err := readIdentity(file)
		switch {
		case err == nil:
			keys = append(keys, key)
		case asked:
			return nil, nil, nil, invalid("the identity file %s cannot be used: %v", file, err).WithPath("identity_file")
		case !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(path, defaultIdentity):
			log.Debug("an identity file cannot be used", "file", file, "error", err)
			left = append(left, unusable{file, err})
		}
		addCertificate(strings.TrimSuffix(file, ".pub") + "-cert.pub")
	}
	return keys, certificates, left, nil
}

// readIdentity reads a private key's file, or a public one whose private half
// an agent may hold.
func readIdentity(file string) (identity, error) {
	id := identity{source: file}
	data, err := readLimited(file, maxIdentity)
	if err != nil {
		if public, perr := readPublic(file + ".pub"); perr == nil {
			id.public, id.why = public, errPublic
			return id, nil
		}
		return id, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err == nil {
		id.public = signer.PublicKey()
		if id.why = othersMay(file); id.why == nil {
			id.signer = signer
		}
		return id, nil
	}
	var encrypted *ssh.PassphraseMissingError
	if errors.As(err, &encrypted) || encryptedPKCS8(data) {
		id.why = cmp.Or(othersMay(file), errEncrypted)
		if encrypted != nil {
			id.public = encrypted.PublicKey
		}
		if id.public == nil {
			if id.public, err = readPublic(file + ".pub"); err != nil {
				return id, fmt.Errorf("it is encrypted, and its public key is not beside it: %w", err)
			}
		}
		return id, nil
	}
	if public, _, _, _, perr := ssh.ParseAuthorizedKey(data); perr == nil {
		id.public, id.why = public, errPublic
		return id, nil
	}
	// The library knows no private keys of security keys.
	public, perr := readPublic(file + ".pub")
	if perr == nil && strings.HasPrefix(public.Type(), "sk-") {
		id.public, id.why = public, errHardware
		return id, nil
	}
	return id, err
}

// encryptedPKCS8 reports whether a file holds an encrypted key of the one kind that
// the library does not know, and OpenSSH does.
func encryptedPKCS8(data []byte) bool {
	block, _ := pem.Decode(data)
	return block != nil && block.Type == "ENCRYPTED PRIVATE KEY"
}

// readPublic reads a public key, or a certificate.
func readPublic(file string) (ssh.PublicKey, error) {
	data, err := readLimited(file, maxIdentity)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	return key, err
}

// agentSocket is where h's agent listens; empty for none.
func (h *hop) agentSocket() (string, error) {
	value := h.Settings.get("identityagent")
	switch {
	case value == "" || value == "SSH_AUTH_SOCK":
		if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
			return socket, nil
		}
		return defaultAgent, nil
	case strings.EqualFold(value, "none"):
		return "", nil
	case strings.HasPrefix(value, "$") && !strings.HasPrefix(value, "${"):
		return os.Getenv(value[1:]), nil
	}
	return h.expand(value)
}

// agentKeys are the keys that h's agent holds. The closer ends the connection to
// it, which signing needs.
func agentKeys(ctx context.Context, h *hop) ([]identity, io.Closer, error) {
	socket, err := h.agentSocket()
	if err != nil || socket == "" {
		return nil, nil, err
	}
	limit := agentTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/3)
	}
	asking, answered := context.WithTimeout(ctx, limit)
	defer answered()
	conn, err := dialAgent(asking, socket)
	if err != nil {
		return nil, nil, err
	}
	silent := context.AfterFunc(asking, func() { conn.Close() })
	// An agent that asks its user for leave is given the time of the handshake.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	closer := closerFunc(func() error {
		stop()
		return conn.Close()
	})
	signers, err := agent.NewClient(conn).Signers()
	if !silent() && err == nil {
		err = asking.Err() // it came too late
	}
	if err != nil {
		closer.Close()
		if asking.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s does not say within %s which keys it holds", socket, limit.Round(time.Millisecond))
		}
		return nil, nil, err
	}
	var out []identity
	for _, s := range signers {
		public := s.PublicKey()
		// It comes in the agent's own type, without what the key is made of.
		if parsed, err := ssh.ParsePublicKey(public.Marshal()); err == nil {
			public = parsed
		}
		out = append(out, identity{source: agentSource, public: public, signer: s})
	}
	return out, closer, nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func sameKey(a, b ssh.PublicKey) bool {
	return a != nil && b != nil && string(plainKey(a).Marshal()) == string(plainKey(b).Marshal())
}

// plainKey is the key in a certificate, or the key itself.
func plainKey(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// accepted restricts an identity to PubkeyAcceptedAlgorithms; false when none of
// its algorithms is among them.
func (h *hop) accepted(id identity) (identity, bool) {
	list := h.Settings.get("pubkeyacceptedalgorithms")
	if list == "" {
		list = h.Settings.get("pubkeyacceptedkeytypes")
	}
	if list == "" {
		return id, true
	}
	names := strings.Split(list, ",")
	kind := id.public.Type()
	if plainKey(id.public).Type() != ssh.KeyAlgoRSA {
		return id, slices.Contains(names, kind)
	}
	var algorithms []string
	for _, a := range []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA} {
		name := a
		if _, certified := id.public.(*ssh.Certificate); certified {
			name += "-cert-v01@openssh.com"
		}
		if slices.Contains(names, name) {
			algorithms = append(algorithms, a)
		}
	}
	if len(algorithms) == 0 {
		return id, false
	}
	if signer, ok := id.signer.(ssh.AlgorithmSigner); ok {
		restricted, err := ssh.NewSignerWithAlgorithms(signer, algorithms)
		if err != nil {
			return id, false
		}
		id.signer = restricted
	}
	return id, true
}
