package connection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
)

// resolver asks `ssh -G`.
type resolver struct {
	program string // empty: there is none
	me      me
}

func (p *Pool) resolver() resolver {
	program := p.o.Program
	if program == "" {
		program = "ssh"
	}
	found, err := exec.LookPath(program)
	if err != nil {
		found = ""
	}
	return resolver{program: found, me: whoami()}
}

// route is the way to d.
func (r resolver) route(ctx context.Context, d Destination) (*Route, error) {
	if r.program == "" {
		return r.plain(d)
	}
	hops, err := r.chain(ctx, d, nil, maxHops)
	if err != nil {
		return nil, err
	}
	route := &Route{destination: d, hops: hops, program: r.program}
	for _, h := range hops {
		why, unknown := h.Settings.beyond()
		if why == "" && len(unknown) > 0 {
			if why, err = r.strange(ctx, h, unknown); err != nil {
				return nil, err
			}
		}
		if why != "" && route.beyond == "" {
			route.beyond = why
		}
	}
	return route, nil
}

// chain is the hops to d. jumps, unless it is nil, takes the place of what the
// configuration says about how to get there.
func (r resolver) chain(ctx context.Context, d Destination, jumps []string, left int) ([]*hop, error) {
	if left == 0 {
		return nil, invalid("the ProxyJump of %s leads over more than %d hosts, or in a circle", d.Host, maxHops)
	}
	h, err := r.ask(ctx, d)
	if err != nil {
		return nil, err
	}
	if jumps == nil {
		if list := h.Settings.set("proxyjump"); list != "" {
			jumps = strings.Split(list, ",")
		}
	} else {
		// As with ssh -J, which wins over a ProxyCommand.
		delete(h.Settings, "proxycommand")
		h.Settings["proxyjump"] = []string{strings.Join(jumps, ",")}
	}
	if len(jumps) == 0 {
		return []*hop{h}, nil
	}
	// The last is the nearest; the others are how to get to it. It has its own
	// configuration's way only where there are none.
	nearest, err := parseJump(jumps[len(jumps)-1])
	if err != nil {
		return nil, err
	}
	nearest.ConfigFile = d.ConfigFile
	var over []string
	if len(jumps) > 1 {
		over = jumps[:len(jumps)-1]
	}
	before, err := r.chain(ctx, nearest, over, left-1)
	if err != nil {
		return nil, err
	}
	return append(before, h), nil
}

// ask is one `ssh -G`.
func (r resolver) ask(ctx context.Context, d Destination) (*hop, error) {
	out, err := r.run(ctx, append(r.arguments(d), "-G", "--", d.Host))
	if err != nil {
		return nil, err
	}
	s := parseSettings(out)
	h := &hop{Name: d.Host, Host: s.get("hostname"), User: s.get("user"), Port: s.number("port", 22), Asked: d, Settings: s, me: r.me}
	if err := checkHost(h.Host); err != nil {
		return nil, fmt.Errorf("HostName of %s: %w", d.Host, err)
	}
	if h.User == "" {
		return nil, invalid("ssh -G names no user for %s", d.Host)
	}
	return h, checkUser(h.User)
}

// arguments are what makes ssh take d's members for its own.
func (r resolver) arguments(d Destination) []string {
	var args []string
	if d.ConfigFile != "" {
		args = append(args, "-F", d.ConfigFile)
	}
	if d.IdentityFile != "" {
		// Not -i, which gives up nothing but warns on the way.
		args = append(args, "-o", `IdentityFile="`+escapeTokens(d.IdentityFile)+`"`)
	}
	if d.User != "" {
		args = append(args, "-l", d.User)
	}
	if d.Port != 0 {
		args = append(args, "-p", strconv.Itoa(d.Port))
	}
	return args
}

// escapeTokens makes a path one in which ssh finds no tokens.
func escapeTokens(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// strange is that of the unknown directives which an empty configuration has
// not, or has with other values.
func (r resolver) strange(ctx context.Context, h *hop, unknown []string) (string, error) {
	out, err := r.run(ctx, []string{"-F", os.DevNull, "-G", "--", h.Name})
	if err != nil {
		return "", err
	}
	plain := parseSettings(out)
	for _, keyword := range unknown {
		if !slices.Equal(plain[keyword], h.Settings[keyword]) {
			return keyword, nil
		}
	}
	return "", nil
}

// run is ssh's output.
func (r resolver) run(ctx context.Context, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, args...)
	stdout, stderr := &program.Tail{Max: maxConfiguration}, &program.Tail{Max: MaxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// A command of Match exec may leave children that hold on to the output. One that
	// is not waited for any more is ended with ssh.
	cmd.WaitDelay = time.Second
	prepare(cmd)
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "", &tool.Error{Kind: tool.EndKind(ctx), Message: "reading the ssh configuration was cancelled", Err: context.Cause(ctx)}
	case ctx.Err() != nil:
		return "", &tool.Error{
			Kind: tool.BackendUnavailable, Message: fmt.Sprintf("ssh -G did not end within %s", resolveTimeout),
			Hint: "see which Match exec or CanonicalizeHostname of the ssh configuration takes so long", Err: ctx.Err(),
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "", invalid("the ssh configuration cannot be used: %s", said(stderr.String(), err)).
			WithHint("run ssh -G %s to see what is wrong with it", Quote(args[len(args)-1]))
	}
	return stdout.String(), nil
}

// said is what a program said about its end, else how it ended.
func said(text string, err error) string {
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		return text
	}
	return err.Error()
}

// plain is the route to d where there is no ssh program: d's members must do.
func (r resolver) plain(d Destination) (*Route, error) {
	missing := func(format string, args ...any) error {
		e := tool.Errorf(tool.BackendUnavailable, format, args...)
		return e.WithHint("install OpenSSH's client, so that ssh is in PATH")
	}
	if d.ConfigFile != "" {
		return nil, missing("the ssh configuration %s cannot be read: there is no ssh program", d.ConfigFile)
	}
	for _, path := range []string{filepath.Join(r.me.home, ".ssh", "config"), systemConfig()} {
		// It may say anything about any host.
		data, err := os.ReadFile(path)
		switch {
		case err == nil && saysSomething(data):
			return nil, missing("the ssh configuration %s cannot be read: there is no ssh program", path)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return nil, missing("there is no ssh program, and whether %s says something about %s is not known: %v", path, d.Host, err)
		}
	}
	route := r.bare(d)
	if route.User() == "" {
		return nil, missing("the profile names no user, and there is no ssh program to ask")
	}
	return route, nil
}

// bare is the route that d's members make, with the defaults of an empty
// configuration.
func (r resolver) bare(d Destination) *Route {
	h := &hop{Name: d.Host, Host: strings.ToLower(d.Host), User: d.User, Port: d.Port, Asked: d, Settings: make(settings), me: r.me}
	if h.User == "" {
		h.User = r.me.name
	}
	if h.Port == 0 {
		h.Port = 22
	}
	identities := []string{d.IdentityFile}
	if d.IdentityFile == "" {
		identities = []string{"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519", "~/.ssh/id_ed25519_sk"}
	}
	h.Settings["identityfile"] = identities
	h.Settings["userknownhostsfile"] = []string{filepath.Join(r.me.home, ".ssh", "known_hosts")}
	return &Route{destination: d, hops: []*hop{h}}
}

// systemConfig is the system's configuration.
func systemConfig() string {
	if data := os.Getenv("PROGRAMDATA"); data != "" {
		return filepath.Join(data, "ssh", "ssh_config")
	}
	return "/etc/ssh/ssh_config"
}

// saysSomething reports whether a configuration has a line that is neither
// empty nor a comment.
func saysSomething(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

// isFile reports whether there is a file of that name.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
