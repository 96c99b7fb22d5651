package sshtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Key is a key pair in files.
type Key struct {
	// File is the private key; the public one is File + ".pub".
	File string
	// Public is one line of authorized_keys.
	Public string
}

// NewKey makes a key pair of a type that ssh-keygen knows, such as ed25519,
// ecdsa or rsa. A passphrase, unless it is empty, encrypts it.
func NewKey(t testing.TB, kind, passphrase string) Key {
	t.Helper()
	file := filepath.Join(tempDir(t), "id_"+kind)
	keygen(t, "-q", "-t", kind, "-N", passphrase, "-C", "test "+kind, "-f", file)
	return Key{File: file, Public: publicLine(t, file)}
}

// Fingerprint is the key's SHA256:... as ssh-keygen prints it.
func (k Key) Fingerprint(t testing.TB) string {
	t.Helper()
	return strings.Fields(keygen(t, "-lf", k.File+".pub"))[1]
}

// SignUser has ca certify k for the principals, for an hour; the certificate
// is written beside the key and its file returned.
func (k Key) SignUser(t testing.TB, ca Key, principals ...string) string {
	t.Helper()
	keygen(t, "-q", "-s", ca.File, "-I", "test user", "-n", strings.Join(principals, ","), "-V", "-1m:+1h", k.File+".pub")
	return k.File + "-cert.pub"
}

// signHost has ca certify k as a host's key for the names.
func (k Key) signHost(t testing.TB, ca Key, validity string, names ...string) string {
	t.Helper()
	keygen(t, "-q", "-s", ca.File, "-I", "test host", "-h", "-n", strings.Join(names, ","), "-V", validity, k.File+".pub")
	return k.File + "-cert.pub"
}

// publicLine is the content of a private key's public file.
func publicLine(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// keygen runs ssh-keygen and returns what it says.
func keygen(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("ssh-keygen", args...).CombinedOutput() //nolint:noctx // it ends by itself
	if err != nil {
		t.Fatalf("ssh-keygen %q: %v: %s", args, err, out)
	}
	return string(out)
}

// tempDir is a temporary directory with a short path, which sockets need, in
// which keys may lie.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sshtest-") //nolint:usetesting // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// write writes a private file.
func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
