package sshtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Client is an ssh configuration and known hosts of a test's own.
type Client struct {
	// ConfigFile and KnownHostsFile are their paths.
	ConfigFile     string
	KnownHostsFile string
	// Dir is where they lie.
	Dir string
}

// NewClient makes a configuration from blocks of it. %KNOWN% in them stands for
// the file of known hosts, which is given to all hosts that name none.
func NewClient(t testing.TB, knownHosts string, blocks ...string) *Client {
	t.Helper()
	dir := tempDir(t)
	c := &Client{Dir: dir, ConfigFile: filepath.Join(dir, "config"), KnownHostsFile: filepath.Join(dir, "known_hosts")}
	c.SetKnownHosts(t, knownHosts)
	rest := "Host *\n  UserKnownHostsFile %KNOWN%\n  GlobalKnownHostsFile none\n  IdentityAgent none\n  IdentitiesOnly yes\n"
	text := strings.Join(append(blocks, rest), "\n")
	write(t, c.ConfigFile, strings.ReplaceAll(text, "%KNOWN%", c.KnownHostsFile))
	return c
}

// SetKnownHosts replaces the known hosts.
func (c *Client) SetKnownHosts(t testing.TB, lines string) {
	t.Helper()
	write(t, c.KnownHostsFile, lines)
}

// HostBlock is a block of ssh_config by which alias is s, reached with key.
func HostBlock(alias string, s *Server, key Key, lines ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n  HostName %s\n  Port %d\n  User %s\n", alias, s.Host, s.Port, s.User)
	if key.File != "" {
		fmt.Fprintf(&b, "  IdentityFile %s\n", key.File)
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// HashKnownHosts hashes the names in lines of known_hosts as ssh-keygen does.
func HashKnownHosts(t testing.TB, lines string) string {
	t.Helper()
	file := filepath.Join(tempDir(t), "known_hosts")
	write(t, file, lines)
	keygen(t, "-H", "-f", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
