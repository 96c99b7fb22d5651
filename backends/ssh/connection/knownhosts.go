package connection

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of hashed names
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The markers of known hosts.
const (
	markerAuthority = "cert-authority"
	markerRevoked   = "revoked"
)

// knownLine is one line of a file of known hosts.
type knownLine struct {
	file     string
	line     int
	marker   string
	patterns []string
	key      ssh.PublicKey
}

func (l knownLine) String() string { return fmt.Sprintf("%s:%d", l.file, l.line) }

// knownHosts is what a host's files of known hosts hold.
//
// The library's package for them is not used for more than the lines' syntax:
// it knows a pattern such as * for port 22 only, no host certificate for
// *.example.com, no alias without a port, and takes an authority's key for a
// host's.
type knownHosts struct {
	files []string
	lines []knownLine
	// name is the host as the files have it, bare without a port if that
	// differs.
	name, bare string
}

// readKnownHosts reads h's files. One that does not exist is an empty one.
func readKnownHosts(h *hop) (*knownHosts, error) {
	k := &knownHosts{files: h.knownHostsFiles(), name: h.knownAs()}
	if h.Port != 22 && h.Settings.get("hostkeyalias") == "" {
		k.bare = strings.ToLower(h.Host)
	}
	for _, file := range k.files {
		data, err := readLimited(file, maxKnownHosts)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the known hosts cannot be read: %w", err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			n++
			marker, patterns, key, _, _, err := ssh.ParseKnownHosts([]byte(line))
			if err != nil {
				continue // empty, a comment, or a key that is not known here and hence matches none
			}
			if marker != "" && marker != markerAuthority && marker != markerRevoked {
				continue
			}
			k.lines = append(k.lines, knownLine{file: file, line: n, marker: marker, patterns: patterns, key: key})
		}
	}
	return k, nil
}

// find are the lines with a marker whose patterns match a name.
func (k *knownHosts) find(marker string, names ...string) []knownLine {
	var out []knownLine
	for _, l := range k.lines {
		if l.marker == marker && slices.ContainsFunc(names, func(name string) bool { return name != "" && matchHost(l.patterns, name) }) {
			out = append(out, l)
		}
	}
	return out
}

// known are the lines for the host's own keys.
func (k *knownHosts) known() []knownLine { return k.find("", k.name) }

// holding is that of the lines which has the key.
func holding(lines []knownLine, key ssh.PublicKey) (knownLine, bool) {
	blob := string(key.Marshal())
	for _, l := range lines {
		if string(l.key.Marshal()) == blob {
			return l, true
		}
	}
	return knownLine{}, false
}

// check accepts a key that the host may show, and says of any other what is
// wrong with it.
func (k *knownHosts) check(h *hop, key ssh.PublicKey) error {
	cert, certified := key.(*ssh.Certificate)
	if !certified {
		return k.checkPlain(h, key)
	}
	err := k.checkCertificate(h, cert)
	if err == nil {
		return nil
	}
	// As with ssh, a certificate that does not convince leaves the key in it.
	var refused *hostKeyError
	if errors.As(err, &refused) && refused.problem == keyRevoked {
		return err
	}
	if k.checkPlain(h, cert.Key) == nil {
		return nil
	}
	return err
}

func (k *knownHosts) checkPlain(h *hop, key ssh.PublicKey) error {
	refuse := func(p problem, lines ...knownLine) error {
		return &hostKeyError{hop: h, problem: p, shown: describe(key), lines: lines, files: k.files}
	}
	if l, ok := holding(k.find(markerRevoked, k.name, k.bare), key); ok {
		return refuse(keyRevoked, l)
	}
	if err := h.longEnough(key); err != nil {
		return &hostKeyError{hop: h, problem: keyInvalid, shown: describe(key), files: k.files, why: err}
	}
	lines := k.known()
	if _, ok := holding(lines, key); ok {
		return nil
	}
	// As with ssh, the key of the name without a port will do for every port.
	if _, ok := holding(k.find("", k.bare), key); ok {
		return nil
	}
	same := slices.DeleteFunc(slices.Clone(lines), func(l knownLine) bool { return l.key.Type() != key.Type() })
	switch {
	case len(same) > 0:
		return refuse(keyChanged, same...)
	case len(lines) > 0:
		return refuse(keyOther, lines...)
	default:
		return refuse(keyUnknown)
	}
}

func (k *knownHosts) checkCertificate(h *hop, cert *ssh.Certificate) error {
	refuse := func(p problem, why error, lines ...knownLine) error {
		return &hostKeyError{hop: h, problem: p, shown: describe(cert.Key), lines: lines, files: k.files, why: why}
	}
	for _, key := range []ssh.PublicKey{cert.Key, cert.SignatureKey} {
		if l, ok := holding(k.find(markerRevoked, k.name, k.bare), key); ok {
			return refuse(keyRevoked, nil, l)
		}
	}
	authority, ok := holding(k.find(markerAuthority, k.name, k.bare), cert.SignatureKey)
	if !ok {
		return refuse(keyInvalid, errors.New("no authority for this host has signed its certificate"), k.find(markerAuthority, k.name, k.bare)...)
	}
	if list := h.Settings.get("casignaturealgorithms"); list != "" && !slices.Contains(strings.Split(list, ","), cert.Signature.Format) {
		return refuse(keyInvalid, fmt.Errorf("its certificate is signed with %s, which CASignatureAlgorithms does not have", cert.Signature.Format), authority)
	}
	if cert.CertType != ssh.HostCert {
		return refuse(keyInvalid, errors.New("its certificate is not a host's"), authority)
	}
	if err := h.longEnough(cert.Key); err != nil {
		return refuse(keyInvalid, err, authority)
	}
	// The names of a certificate have no port, and may have wildcards.
	name := h.Settings.get("hostkeyalias")
	if name == "" {
		name = strings.ToLower(h.Host)
	}
	principal := name
	for _, p := range cert.ValidPrincipals {
		if matchPattern(p, name) {
			principal = p
			break
		}
	}
	if err := new(ssh.CertChecker).CheckCert(principal, cert); err != nil {
		return refuse(keyInvalid, fmt.Errorf("its certificate is not valid: %w", err), authority)
	}
	return nil
}

// longEnough refuses RSA keys that are shorter than RequiredRSASize.
func (h *hop) longEnough(key ssh.PublicKey) error {
	crypto, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	modulus, ok := crypto.CryptoPublicKey().(*rsa.PublicKey)
	least := h.Settings.number("requiredrsasize", 1024)
	if !ok || modulus.N.BitLen() >= least {
		return nil
	}
	return fmt.Errorf("its RSA key has %d bits, and RequiredRSASize is %d", modulus.N.BitLen(), least)
}

// algorithms are the host key algorithms to offer: those for which there is a
// line come first, since a server shows the key of the first that it has.
// Certificates are asked for only where there is an authority.
func (k *knownHosts) algorithms(h *hop) []string {
	var list []string
	if configured := h.Settings.get("hostkeyalgorithms"); configured != "" {
		list = usable(configured, hostKeysOf)
	} else {
		list = ssh.SupportedAlgorithms().HostKeys
	}
	authority := len(k.find(markerAuthority, k.name, k.bare)) > 0
	types := make(map[string]bool)
	for _, l := range k.find("", k.name, k.bare) {
		types[l.key.Type()] = true
	}
	var certified, known, others []string
	for _, algorithm := range list {
		plain, isCert := strings.CutSuffix(algorithm, "-cert-v01@openssh.com")
		switch {
		case isCert && authority:
			certified = append(certified, algorithm)
		case isCert:
		case types[keyType(plain)]:
			known = append(known, algorithm)
		default:
			others = append(others, algorithm)
		}
	}
	return slices.Concat(certified, known, others)
}

// keyType is the type of the keys that an algorithm signs with.
func keyType(algorithm string) string {
	if algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algorithm
}

// matchHost reports whether the patterns of a line match a name: one does, and
// none with ! before it.
func matchHost(patterns []string, name string) bool {
	found := false
	for _, p := range patterns {
		if strings.HasPrefix(p, "|1|") {
			if matchHashed(p, name) {
				found = true
			}
			continue
		}
		if negated, ok := strings.CutPrefix(p, "!"); ok {
			if matchPattern(negated, name) {
				return false
			}
			continue
		}
		if matchPattern(p, name) {
			found = true
		}
	}
	return found
}

// matchHashed matches |1|salt|hash.
func matchHashed(pattern, name string) bool {
	parts := strings.Split(pattern, "|")
	if len(parts) != 4 {
		return false
	}
	salt, err1 := base64.StdEncoding.DecodeString(parts[2])
	want, err2 := base64.StdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}

// matchPattern matches a host's name against a pattern with * and ?, without
// regard to case.
func matchPattern(pattern, name string) bool {
	return matchWild(strings.ToLower(pattern), strings.ToLower(name))
}

// matchWild matches a string against a pattern with * and ?.
func matchWild(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			// The star takes one more.
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// readLimited reads a file that is not longer than limit. What could keep whoever
// opens it waiting, such as a pipe, is none.
func readLimited(file string, limit int64) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		return nil, fmt.Errorf("%s is no file: %s", file, info.Mode())
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, limit)
	}
	return data, nil
}
