package docker

import (
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// endpoint is where a daemon listens, and who said so.
type endpoint struct {
	// Host is written as the docker CLI writes it: unix:///path, npipe:////./x,
	// tcp://host:port, ssh://user@host.
	Host string
	// From names the setting that chose it, for errors.
	From string
	// TLS is set for tcp endpoints that are to be spoken to over TLS.
	TLS *tlsFiles
}

// tlsFiles are the paths of PEM files; an empty one is not used.
type tlsFiles struct {
	CA, Cert, Key string
	SkipVerify    bool
}

func (e endpoint) String() string { return e.Host + " (" + e.From + ")" }

// scheme is the part of Host before "://".
func (e endpoint) scheme() string {
	scheme, _, _ := strings.Cut(e.Host, "://")
	return scheme
}

// near reports whether the daemon may see the same files as this process: a
// socket of this machine. A virtual machine behind it is found out later.
func (e endpoint) near() bool { return runtime.GOOS == "linux" && e.scheme() == "unix" }

// key distinguishes connections.
func (e endpoint) key() string {
	if e.TLS == nil {
		return e.Host
	}
	return fmt.Sprintf("%s %+v", e.Host, *e.TLS)
}

// chooser chooses the endpoint of a profile.
type chooser struct {
	getenv func(string) string
	// home is the user's home directory, "" when there is none.
	home string
}

// choose returns the profile's docker_host, else its docker_context, else
// DOCKER_HOST, else the current context of the docker CLI, else the default
// socket: the CLI's own order, after what the profile says.
func (c chooser) choose(p profile.Profile) (endpoint, error) {
	// What is wrong with a setting names the profile. The daemon's connection does not:
	// all profiles that choose the daemon share it.
	if p.DockerHost != "" {
		e, err := c.host(p.DockerHost, fmt.Sprintf("docker_host of the profile %q", p.Name))
		e.From = "docker_host of the profile"
		return e, err
	}
	if p.DockerContext != "" {
		e, err := c.context(p.DockerContext, fmt.Sprintf("docker_context of the profile %q", p.Name))
		e.From = "docker_context of the profile"
		return e, err
	}
	if host := c.getenv("DOCKER_HOST"); host != "" {
		return c.host(host, "DOCKER_HOST")
	}
	name, err := c.currentContext()
	if err != nil {
		return endpoint{}, err
	}
	if name != "" && name != defaultContext {
		return c.context(name, fmt.Sprintf("the docker CLI's context %q", name))
	}
	return c.host(defaultHost(), "the default")
}

func defaultHost() string {
	if runtime.GOOS == "windows" {
		return "npipe:////./pipe/docker_engine"
	}
	return "unix:///var/run/docker.sock"
}

// host checks the address and adds TLS as the environment says.
func (c chooser) host(host, from string) (endpoint, error) {
	if rest, ok := strings.CutPrefix(host, "http://"); ok {
		host = "tcp://" + rest // what the CLI takes it for
	}
	rest, secure := strings.CutPrefix(host, "https://")
	if secure {
		host = "tcp://" + rest
	}
	e := endpoint{Host: host, From: from}
	if err := checkHost(host); err != nil {
		return e, tool.Errorf(tool.ConfigInvalid, "%s is %q: %v", from, host, err).
			WithHint("write it as unix:///path/to/docker.sock, tcp://host:2376 or ssh://user@host")
	}
	if e.scheme() != "tcp" {
		return e, nil
	}
	dir := c.getenv("DOCKER_CERT_PATH")
	if dir == "" && !secure && c.getenv("DOCKER_TLS_VERIFY") == "" {
		return e, nil
	}
	if dir == "" {
		dir = c.configDir()
	}
	// The certificate is always verified: DOCKER_CERT_PATH without
	// DOCKER_TLS_VERIFY would mean encryption with whoever answers.
	e.TLS = &tlsFiles{
		CA:   filepath.Join(dir, "ca.pem"),
		Cert: filepath.Join(dir, "cert.pem"),
		Key:  filepath.Join(dir, "key.pem"),
	}
	return e, nil
}

// checkHost refuses what no connection can be made to.
func checkHost(host string) error {
	scheme, rest, ok := strings.Cut(host, "://")
	switch {
	case !ok:
		return fmt.Errorf("it has no scheme")
	case rest == "":
		return fmt.Errorf("nothing follows the scheme")
	}
	switch scheme {
	case "unix":
		if !strings.HasPrefix(rest, "/") {
			return fmt.Errorf("the socket's path is not absolute")
		}
	case "npipe":
		if runtime.GOOS != "windows" {
			return fmt.Errorf("named pipes are there on Windows only")
		}
	case "tcp":
		if u, err := url.Parse(host); err != nil || u.Hostname() == "" || u.Port() == "" {
			return fmt.Errorf("it needs a host and a port")
		}
	case "ssh":
		if _, err := sshArgs(host); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the scheme %q is not known", scheme)
	}
	return nil
}
