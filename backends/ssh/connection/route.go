package connection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Route is how a destination is reached. It does not change. It names files
// that are read anew at each dial.
type Route struct {
	destination Destination
	// hops are the hosts in the order in which they are reached; the last is the
	// destination.
	hops []*hop
	// program is OpenSSH's client, or empty.
	program string
	// beyond is the directive that only OpenSSH can follow, or empty.
	beyond string
	key    string
}

// hop is one host of a route. Its exported members make the route's key.
type hop struct {
	// Name is the host as it was asked for, Host what that stands for.
	Name string
	Host string
	Port int
	User string
	// Asked is what was asked for beside the name.
	Asked    Destination
	Settings settings
	me       me
}

// Key is equal for routes that may share a connection.
func (r *Route) Key() string { return r.key }

// User is the account on the machine.
func (r *Route) User() string { return r.last().User }

// String is user@host:port, and over which hosts, for a person.
func (r *Route) String() string {
	var b strings.Builder
	b.WriteString(r.last().String())
	for i := len(r.hops) - 2; i >= 0; i-- {
		if i == len(r.hops)-2 {
			b.WriteString(" through ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(r.hops[i].String())
	}
	return b.String()
}

func (r *Route) last() *hop { return r.hops[len(r.hops)-1] }

// seal computes the key.
func (r *Route) seal() error {
	data, err := json.Marshal(struct {
		Hops            []*hop
		Program, Beyond string
	}{r.hops, r.program, r.beyond})
	if err != nil {
		return fmt.Errorf("the key of a route: %w", err)
	}
	sum := sha256.Sum256(data)
	r.key = hex.EncodeToString(sum[:])
	return nil
}

func (h *hop) String() string { return h.User + "@" + address(h.Host, h.Port) }

// knownAs is the name under which known hosts have h: its alias, or its name
// with the port unless that is 22.
func (h *hop) knownAs() string {
	if alias := h.Settings.get("hostkeyalias"); alias != "" {
		return alias
	}
	return hostWithPort(h.Host, h.Port)
}

// hostWithPort is a name as known hosts have it.
func hostWithPort(host string, port int) string {
	host = strings.ToLower(host)
	if port == 22 {
		return host
	}
	return fmt.Sprintf("[%s]:%d", host, port)
}

// knownHostsFiles are the files of known hosts for h, the user's first.
func (h *hop) knownHostsFiles() []string {
	if f := h.Asked.KnownHostsFile; f != "" {
		return []string{f}
	}
	var files []string
	for _, keyword := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		for _, path := range h.Settings.paths(keyword, isFile) {
			// ssh has replaced everything but, in old versions, the tilde.
			if after, ok := strings.CutPrefix(path, "~/"); ok {
				path = filepath.Join(h.me.home, after)
			}
			// Windows' own prints its default with this in it.
			path = strings.ReplaceAll(path, "__PROGRAMDATA__", os.Getenv("PROGRAMDATA"))
			files = append(files, path)
		}
	}
	return files
}

// Resolve finds out how d is reached. It starts `ssh -G`, once for each host
// that is jumped over, and connects to nothing. Errors are *tool.Error:
// configInvalid for what is wrong with the destination or the configuration,
// backendUnavailable where the ssh program is needed and missing.
func (p *Pool) Resolve(ctx context.Context, d Destination) (*Route, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	r, err := p.resolver().route(ctx, d)
	if err != nil {
		return nil, err
	}
	return r, r.seal()
}

// check refuses what ssh could misread.
func (d Destination) check() error {
	if err := checkHost(d.Host); err != nil {
		return err
	}
	if err := checkUser(d.User); err != nil {
		return err
	}
	if d.Port < 0 || d.Port > 65535 {
		return invalid("the port %d is none", d.Port)
	}
	for member, path := range map[string]string{
		"identity file": d.IdentityFile, "file of known hosts": d.KnownHostsFile, "ssh configuration": d.ConfigFile,
	} {
		if err := checkPath(member, path); err != nil {
			return err
		}
	}
	return nil
}
