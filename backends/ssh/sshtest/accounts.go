package sshtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// accountsVariable names the folder that the rig's server is described in.
const accountsVariable = "CAISSON_TEST_SSH"

// Accounts are accounts of other users, on a server of root's that the test rig
// has started: see testdata/rig/sshd.
type Accounts struct {
	// Server is where they are; its User is nobody, and it cannot be stopped.
	Server *Server
	// Key may log in to all of them.
	Key   Key
	known string
	users map[string]string
}

// FindAccounts finds them. Without the rig there are none: the test is skipped
// there, but never in CI.
func FindAccounts(t testing.TB) *Accounts {
	t.Helper()
	dir := os.Getenv(accountsVariable)
	if dir == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set", accountsVariable)
		}
		t.Skipf("%s is not set: make test, as root, starts the server that this needs", accountsVariable)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	port, err := strconv.Atoi(read("port"))
	if err != nil {
		t.Fatal(err)
	}
	host := read("host")
	a := &Accounts{
		Server: &Server{Host: host, Port: port, Addr: host + ":" + strconv.Itoa(port)},
		Key:    Key{File: filepath.Join(dir, "key"), Public: read("key.pub")},
		known:  read("known_hosts") + "\n", users: make(map[string]string),
	}
	for line := range strings.Lines(read("accounts")) {
		kind, user, _ := strings.Cut(strings.TrimSpace(line), " ")
		a.users[kind] = user
	}
	return a
}

// KnownHosts are the lines of known_hosts for the server.
func (a *Accounts) KnownHosts() string { return a.known }

// As is the server with the account of a kind: plain, restricted, sh, noisy,
// nologin, readonly, noexec or full. The last two are missing where nothing can
// be mounted: the test is skipped there, but never in CI.
func (a *Accounts) As(t testing.TB, kind string) *Server {
	t.Helper()
	user, ok := a.users[kind]
	if !ok && os.Getenv("CI") == "true" {
		t.Fatalf("the rig has no account of the kind %s", kind)
	}
	if !ok {
		t.Skipf("the rig could not make the account of the kind %s", kind)
	}
	return &Server{Host: a.Server.Host, Port: a.Server.Port, Addr: a.Server.Addr, User: user}
}
