package connection

import (
	"crypto/sha1" //nolint:gosec // OpenSSH's %C, which is a name and no protection
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// me is the user who runs this, as ssh sees it: the home directory is the
// account's, whatever $HOME says.
type me struct {
	name, home, uid string
}

func whoami() me {
	var m me
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		m = me{name: u.Username, home: u.HomeDir, uid: u.Uid}
	} else if u, err := user.Current(); err == nil {
		// Accounts of a directory service are not in /etc/passwd.
		m = me{name: u.Username, home: u.HomeDir, uid: u.Uid}
	}
	if m.home == "" {
		m.home, _ = os.UserHomeDir() // empty: "~" then leads nowhere, and keys are not found
	}
	// On Windows the name has its domain before it.
	m.name = m.name[strings.LastIndexByte(m.name, '\\')+1:]
	return m
}

// expand replaces ~, ${VARIABLE} and the tokens of ssh_config in a path that
// ssh -G prints as it was written.
func (h *hop) expand(path string) (string, error) {
	path, err := expandVariables(path)
	if err != nil {
		return "", err
	}
	path, err = h.tokens(path)
	if err != nil {
		return "", err
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(h.me.home, path[1:]), nil
	}
	if after, ok := strings.CutPrefix(path, "~"); ok {
		name, rest, _ := strings.Cut(after, "/")
		u, err := user.Lookup(name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		return filepath.Join(u.HomeDir, rest), nil
	}
	return path, nil
}

// expandVariables replaces ${VARIABLE}; one that is not set is an error, as it
// is to ssh.
func expandVariables(s string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, closed := strings.Cut(after, "}")
		value, set := os.LookupEnv(name)
		if !closed || !set {
			return "", fmt.Errorf("the variable ${%s is not set", strings.TrimSuffix(after, rest))
		}
		b.WriteString(value)
		s = rest
	}
}

// tokens replaces the tokens that ssh_config allows in names of files.
func (h *hop) tokens(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", fmt.Errorf("%q ends within a token", s)
		}
		full, err := os.Hostname()
		if err != nil {
			return "", err
		}
		short, _, _ := strings.Cut(full, ".")
		switch s[i] {
		case '%':
			b.WriteByte('%')
		case 'd':
			b.WriteString(h.me.home)
		case 'h':
			b.WriteString(h.Host)
		case 'i':
			b.WriteString(h.me.uid)
		case 'k':
			if alias := h.Settings.get("hostkeyalias"); alias != "" {
				b.WriteString(alias)
			} else {
				b.WriteString(h.Name)
			}
		case 'L':
			b.WriteString(short)
		case 'l':
			b.WriteString(full)
		case 'n':
			b.WriteString(h.Name)
		case 'p':
			b.WriteString(strconv.Itoa(h.Port))
		case 'r':
			b.WriteString(h.User)
		case 'u':
			b.WriteString(h.me.name)
		case 'j':
			b.WriteString(h.jumpHost())
		case 'C':
			sum := sha1.Sum([]byte(full + h.Host + strconv.Itoa(h.Port) + h.User + h.jumpHost()))
			b.WriteString(hex.EncodeToString(sum[:]))
		default:
			return "", fmt.Errorf("%q has the token %%%c, which is not known here", s, s[i])
		}
	}
	return b.String(), nil
}

// jumpHost is the host of the ProxyJump that is nearest, or empty.
func (h *hop) jumpHost() string {
	jumps := strings.Split(h.Settings.set("proxyjump"), ",")
	d, err := parseJump(jumps[len(jumps)-1])
	if err != nil {
		return ""
	}
	return d.Host
}
