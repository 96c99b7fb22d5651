package connection

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/caisson-dev/caisson/backends/tool"
)

// shellCharacters are what OpenSSH refuses in names, since a ProxyCommand or a
// Match exec of the user's may put them through a shell.
const shellCharacters = "'`\"$\\;&<>|(){}"

// checkHost refuses what is no host and could be taken for something else by
// ssh, or by a shell.
func checkHost(name string) error {
	switch {
	case name == "":
		return invalid("the host is empty")
	case strings.HasPrefix(name, "-"):
		return invalid("the host %q begins with a dash", name)
	case strings.ContainsFunc(name, blankOrControl):
		return invalid("the host %q has blanks or control characters", name)
	case strings.ContainsAny(name, shellCharacters):
		return invalid("the host %q has characters that a shell would read", name)
	case strings.ContainsAny(name, "@,/"):
		return invalid("the host %q holds more than a host", name).
			WithHint("user and port have members of their own")
	}
	return nil
}

// checkUser refuses what is no account. Empty is none.
func checkUser(name string) error {
	switch {
	case strings.HasPrefix(name, "-"):
		return invalid("the user %q begins with a dash", name)
	case strings.ContainsFunc(name, blankOrControl):
		return invalid("the user %q has blanks or control characters", name)
	case strings.ContainsAny(name, shellCharacters):
		return invalid("the user %q has characters that a shell would read", name)
	}
	return nil
}

// noName reports whether what aliases stand for has a port or brackets in it, which
// no resolver knows. Only a ProxyCommand could make something of it.
func noName(host string) bool {
	return strings.ContainsAny(host, "[]") || strings.Count(host, ":") == 1
}

func blankOrControl(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// checkPath refuses a path that cannot be written into an option of ssh's.
func checkPath(member, path string) error {
	if strings.ContainsFunc(path, unicode.IsControl) || strings.ContainsAny(path, `"`) || strings.Contains(path, "${") {
		return invalid("the %s %q has characters that ssh would read", member, path)
	}
	return nil
}

func invalid(format string, args ...any) *tool.Error {
	return tool.Errorf(tool.ConfigInvalid, format, args...)
}

// parseJump reads one host of a ProxyJump: [user@]host[:port], or an ssh URI.
func parseJump(spec string) (Destination, error) {
	bad := func() (Destination, error) {
		return Destination{}, invalid("the ProxyJump %q is no host", spec)
	}
	var d Destination
	rest := spec
	if after, ok := strings.CutPrefix(spec, "ssh://"); ok {
		u, err := url.Parse(spec)
		if err != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
			return bad()
		}
		if u.User != nil {
			d.User = u.User.Username()
		}
		rest = after[strings.LastIndexByte(after, '@')+1:]
		rest = strings.TrimRight(rest, "/")
	} else if at := strings.LastIndexByte(spec, '@'); at >= 0 {
		d.User, rest = spec[:at], spec[at+1:]
		if d.User == "" {
			return bad()
		}
	}
	host, port := rest, ""
	switch {
	case strings.HasPrefix(rest, "["):
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return bad()
		}
		host, port = rest[1:end], rest[end+1:]
		if port != "" {
			if !strings.HasPrefix(port, ":") {
				return bad()
			}
			port = port[1:]
		}
	case strings.Count(rest, ":") == 1:
		host, port, _ = strings.Cut(rest, ":")
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad()
		}
		d.Port = int(n)
	}
	d.Host = host
	if err := checkHost(d.Host); err != nil {
		return d, err
	}
	return d, checkUser(d.User)
}

// address is host:port, with brackets where they are needed.
func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
