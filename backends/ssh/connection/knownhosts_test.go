package connection

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// newSigner is a key of a test's own.
func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func newRSA(t *testing.T, bits int) ssh.Signer {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func line(key ssh.PublicKey) string {
	return key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal()) + "\n"
}

// certify makes a host's certificate.
func certify(t *testing.T, key ssh.PublicKey, ca ssh.Signer, change func(*ssh.Certificate), names ...string) *ssh.Certificate {
	t.Helper()
	c := &ssh.Certificate{
		Key: key, CertType: ssh.HostCert, ValidPrincipals: names,
		ValidAfter: uint64(time.Now().Add(-time.Minute).Unix()), ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
	}
	if change != nil {
		change(c)
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKnownHosts: every form of a line, and what is made of a key.
func TestKnownHosts(t *testing.T) {
	t.Parallel()
	host, other, ca := newSigner(t), newSigner(t), newSigner(t)
	large := newRSA(t, 2048)
	key, otherKey := host.PublicKey(), other.PublicKey()
	caLine := line(ca.PublicKey())
	const accepted = problem(-1)
	cert := func(change func(*ssh.Certificate), names ...string) ssh.PublicKey {
		return certify(t, key, ca, change, names...)
	}
	hashed := func(name string) string { return sshtest.HashKnownHosts(t, name+" "+line(key)) }
	tests := []struct {
		name string
		// lines of two files; the second may be missing.
		first, second string
		port          int
		settings      settings
		shown         ssh.PublicKey
		want          problem
	}{
		{"plain", "box.example " + line(key), "", 22, nil, key, accepted},
		{"case", "BOX.example " + line(key), "", 22, nil, key, accepted},
		{"comment, blank and broken lines", "# x\n\nbroken\nbox.example ssh-ed25519 AAAA\nbox.example " + line(key), "", 22, nil, key, accepted},
		{"CRLF", "box.example " + strings.TrimSpace(line(key)) + " c\r\n", "", 22, nil, key, accepted},
		{"no final newline", "box.example " + strings.TrimSpace(line(key)), "", 22, nil, key, accepted},
		{"several names", "a,box.example,10.0.0.1 " + line(key), "", 22, nil, key, accepted},
		{"wildcard", "*.example " + line(key), "", 22, nil, key, accepted},
		{"question mark", "b?x.example " + line(key), "", 22, nil, key, accepted},
		{"negated", "*.example,!box.example " + line(key), "", 22, nil, key, keyUnknown},
		{"second file", "", "box.example " + line(key), 22, nil, key, accepted},
		{"second line of the type", "box.example " + line(otherKey) + "box.example " + line(key), "", 22, nil, key, accepted},
		{"hashed", hashed("box.example"), "", 22, nil, key, accepted},
		{"hashed, other", hashed("bax.example"), "", 22, nil, key, keyUnknown},
		{"hashed, port", hashed("[box.example]:2222"), "", 2222, nil, key, accepted},
		{"hashed, broken", "|1|x|y " + line(key) + "|1|a " + line(key), "", 22, nil, key, keyUnknown},
		{"port", "[box.example]:2222 " + line(key), "", 2222, nil, key, accepted},
		{"other port", "[box.example]:2223 " + line(key), "", 2222, nil, key, keyUnknown},
		{"port of 22 alone", "[box.example]:2222 " + line(key), "", 22, nil, key, keyUnknown},
		{"name without the port will do", "box.example " + line(key), "", 2222, nil, key, accepted},
		{"but says nothing against another key", "box.example " + line(otherKey), "", 2222, nil, key, keyUnknown},
		{"wildcard and port", "* " + line(key), "", 2222, nil, key, accepted},
		{"alias", "alias " + line(key), "", 2222, settings{"hostkeyalias": {"alias"}}, key, accepted},
		{"alias alone counts", "[box.example]:2222,box.example " + line(key), "", 2222, settings{"hostkeyalias": {"alias"}}, key, keyUnknown},
		{"empty", "", "", 22, nil, key, keyUnknown},
		{"unknown", "bax.example " + line(key), "", 22, nil, key, keyUnknown},
		{"changed", "box.example " + line(otherKey), "", 22, nil, key, keyChanged},
		{"changed, behind another type", "box.example " + line(large.PublicKey()) + "box.example " + line(otherKey), "", 22, nil, key, keyChanged},
		{"other type", "box.example " + line(large.PublicKey()), "", 22, nil, key, keyOther},
		{"revoked", "box.example " + line(key) + "@revoked * " + line(key), "", 22, nil, key, keyRevoked},
		{"revoked in the second file", "box.example " + line(key), "@revoked box.example " + line(key), 22, nil, key, keyRevoked},
		{"revoked by its name without port", "[box.example]:2222 " + line(key), "@revoked box.example " + line(key), 2222, nil, key, keyRevoked},
		{"revoked elsewhere", "box.example " + line(key) + "@revoked bax.example " + line(key), "", 22, nil, key, accepted},
		{"unknown marker", "@whatever box.example " + line(key), "", 22, nil, key, keyUnknown},
		{"an authority's key is no host's", "@cert-authority * " + line(key), "", 22, nil, key, keyUnknown},
		{"RSA", "box.example " + line(large.PublicKey()), "", 22, nil, large.PublicKey(), accepted},
		{"RSA too short", "box.example " + line(large.PublicKey()), "", 22, settings{"requiredrsasize": {"3072"}}, large.PublicKey(), keyInvalid},

		{"certificate", "@cert-authority *.example " + caLine, "", 22, nil, cert(nil, "box.example"), accepted},
		{"certificate, port", "@cert-authority box.example " + caLine, "", 2222, nil, cert(nil, "box.example"), accepted},
		{"certificate, alias", "@cert-authority alias " + caLine, "", 22, settings{"hostkeyalias": {"alias"}}, cert(nil, "alias"), accepted},
		{"certificate, wildcard", "@cert-authority * " + caLine, "", 22, nil, cert(nil, "a", "*.example"), accepted},
		{"certificate, another's name", "@cert-authority * " + caLine, "", 22, nil, cert(nil, "bax.example"), keyInvalid},
		{"certificate, another's authority", "@cert-authority bax.example " + caLine, "", 22, nil, cert(nil, "box.example"), keyInvalid},
		{"certificate, no authority but the key", "box.example " + line(key), "", 22, nil, cert(nil, "box.example"), accepted},
		{"certificate, authority's key as a host's", "box.example " + caLine, "", 22, nil, cert(nil, "box.example"), keyInvalid},
		{"certificate, expired", "@cert-authority * " + caLine, "", 22, nil, cert(func(c *ssh.Certificate) { c.ValidBefore = c.ValidAfter + 1 }, "box.example"), keyInvalid},
		{"certificate, not yet valid", "@cert-authority * " + caLine, "", 22, nil, cert(func(c *ssh.Certificate) { c.ValidAfter += 600 }, "box.example"), keyInvalid},
		{"certificate of a user", "@cert-authority * " + caLine, "", 22, nil, cert(func(c *ssh.Certificate) { c.CertType = ssh.UserCert }, "box.example"), keyInvalid},
		{"certificate, critical option", "@cert-authority * " + caLine, "", 22, nil, cert(func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"x": ""} }, "box.example"), keyInvalid},
		{"certificate, authority revoked", "@cert-authority * " + caLine + "@revoked * " + caLine, "", 22, nil, cert(nil, "box.example"), keyRevoked},
		{"certificate, key revoked", "@cert-authority * " + caLine + "@revoked * " + line(key), "", 22, nil, cert(nil, "box.example"), keyRevoked},
		{"certificate, signature algorithm", "@cert-authority * " + caLine, "", 22, settings{"casignaturealgorithms": {"rsa-sha2-512"}}, cert(nil, "box.example"), keyInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := []string{filepath.Join(dir, "known"), filepath.Join(dir, "known2")}
			s := settings{"userknownhostsfile": {files[0]}, "globalknownhostsfile": {files[1]}}
			for keyword, value := range tt.settings {
				s[keyword] = value
			}
			for i, lines := range []string{tt.first, tt.second} {
				if lines == "" {
					continue
				}
				if err := os.WriteFile(files[i], []byte(lines), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := &hop{Name: "box", Host: "Box.example", Port: tt.port, User: "u", Settings: s}
			k, err := readKnownHosts(h)
			if err != nil {
				t.Fatal(err)
			}
			err = k.check(h, tt.shown)
			var refused *hostKeyError
			switch {
			case err == nil && tt.want != accepted:
				t.Fatal("it was accepted")
			case err != nil && !errors.As(err, &refused):
				t.Fatal(err)
			case refused != nil && refused.problem != tt.want:
				t.Fatalf("problem %d, want %d: %v", refused.problem, tt.want, err)
			}
		})
	}
}

// TestHostKeyAlgorithms: what the files hold is asked for first.
func TestHostKeyAlgorithms(t *testing.T) {
	t.Parallel()
	ed, large := newSigner(t).PublicKey(), newRSA(t, 2048).PublicKey()
	configured := "ssh-ed25519-cert-v01@openssh.com,ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256"
	for _, tt := range []struct{ name, lines, configured, want string }{
		{"nothing known", "", configured, "ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256"},
		{"RSA known", "box " + line(large), configured, "rsa-sha2-512,rsa-sha2-256,ssh-ed25519,ecdsa-sha2-nistp256"},
		{"both known", "box " + line(large) + "box " + line(ed), configured, "ssh-ed25519,rsa-sha2-512,rsa-sha2-256,ecdsa-sha2-nistp256"},
		{"authority", "@cert-authority * " + line(ed), configured, "ssh-ed25519-cert-v01@openssh.com,ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256"},
		{"another's", "bax " + line(large), configured, "ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256"},
		{"only what is configured", "box " + line(ed), "rsa-sha2-512,sk-nonsense", "rsa-sha2-512"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "known")
			if err := os.WriteFile(file, []byte(tt.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			h := &hop{Host: "box", Port: 22, Asked: Destination{KnownHostsFile: file}, Settings: settings{"hostkeyalgorithms": {tt.configured}}}
			k, err := readKnownHosts(h)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(k.algorithms(h), ","); got != tt.want {
				t.Fatalf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestKnownHostsUnreadable: a file that is there and cannot be read is not an
// empty one, which might hide a revoked key.
func TestKnownHostsUnreadable(t *testing.T) {
	t.Parallel()
	h := &hop{Host: "box", Port: 22, Asked: Destination{KnownHostsFile: t.TempDir()}}
	if _, err := readKnownHosts(h); err == nil {
		t.Fatal("a directory was read")
	}
	file := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(file, bytes.Repeat([]byte("#"), maxKnownHosts+1), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Asked.KnownHostsFile = file
	if _, err := readKnownHosts(h); err == nil {
		t.Fatal("a giant was read")
	}
}

// TestMatchWild: patterns as ssh has them.
func TestMatchWild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"?", "a", true}, {"?", "", false}, {"a?c*", "abcd", true}, {"*b*d", "abcd", true}, {"**", "x", true}, {"[a]", "a", false}, {"[a]", "[a]", true},
	} {
		if got := matchWild(tt.pattern, tt.s); got != tt.want {
			t.Errorf("%q %q: %v", tt.pattern, tt.s, got)
		}
	}
	if !slices.Equal([]bool{matchPattern("A.b", "a.B")}, []bool{true}) {
		t.Error("case counts")
	}
}
