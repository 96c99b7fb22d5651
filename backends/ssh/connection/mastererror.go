package connection

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// What OpenSSH says when it gives up, and on the way to that.
const (
	saysDenied  = `(?m)^(?:\S+: )?Permission denied \(([^)]*)\)|Too many authentication failures`
	saysHostKey = `Host key verification failed|host key is known for|has changed and you have requested strict checking|REVOKED HOST KEY`
	// saysShown is on a line before that.
	saysShown = `debug1: Server host key: (\S+) (SHA256:\S+)`
	// saysHost is the name under which it has looked for a key.
	saysHost = `host key is known for (\S+) and|[Hh]ost key for (\S+) (?:has changed|was revoked)`
)

// plainLines are the lines that OpenSSH means for people.
func plainLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "debug1: ") && !strings.HasPrefix(line, "OpenSSH_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// stuckIn says what a master that has said text waits for, as far as that is not the
// machine: after a comma, or nothing.
func stuckIn(text string) string {
	since := func(line, end string) bool {
		begun := strings.LastIndex(text, line)
		return begun >= 0 && !strings.Contains(text[begun:], end)
	}
	switch {
	case since("debug1: Server accepts key: ", "Authenticated to "):
		return ", since the ssh agent, or the device that has the key, does not sign: see whether it waits for leave"
	case since("debug1: SSH2_MSG_NEWKEYS received", "debug1: Will attempt key: ") && since("debug1: SSH2_MSG_NEWKEYS received", "debug1: SSH2_MSG_SERVICE_ACCEPT"):
		return ", since the ssh agent does not say which keys it holds"
	}
	return ""
}

// masterError is the error for a master that ended before it was joined.
func (r *Route) masterError(text string, err error) error {
	what := said(plainLines(text), err)
	connect := r.last().sshCommand()
	switch {
	case regexp.MustCompile(saysHostKey).MatchString(text):
		return r.hostKeyError(text, what)
	case regexp.MustCompile(saysDenied).MatchString(text):
		return tool.Errorf(tool.BackendUnavailable, "authentication on the way to %s failed: %s", r, what).
			WithHint("%s; where the machine wants more than a key, set SSH_ASKPASS to a program that asks", r.last().setUpKey())
	case strings.Contains(text, "Bad configuration option"), strings.Contains(text, "command-line:"):
		return invalid("OpenSSH does not take the configuration of %s: %s", r, what).WithHint("see whether %s connects", connect)
	}
	if end := masterHungUp(text, r.proxyCommand(), err); end != nil {
		e := tool.Errorf(tool.BackendUnavailable, "OpenSSH cannot reach %s: %w: %s", r, end, what)
		e.Retryable = true
		return e.WithHint("%s", end.hint(connect))
	}
	e := tool.Errorf(tool.BackendUnavailable, "OpenSSH cannot reach %s: %s", r, what)
	e.Retryable = true
	return e.WithHint("see whether %s connects", connect)
}

// hostKeyError is the error for a host key that OpenSSH has refused: the one
// that it would have been here, as far as what it says allows.
func (r *Route) hostKeyError(text, what string) error {
	failed := regexp.MustCompile(saysHostKey).FindStringIndex(text)
	name := ""
	if found := regexp.MustCompile(saysHost).FindStringSubmatch(text); found != nil {
		name = found[1] + found[2]
	}
	shown := regexp.MustCompile(saysShown).FindAllStringSubmatch(text[:failed[1]], -1)
	i := slices.IndexFunc(r.hops, func(h *hop) bool { return strings.EqualFold(h.knownAs(), name) })
	if i < 0 || len(shown) == 0 {
		return tool.Errorf(tool.BackendUnavailable, "OpenSSH refuses a host key on the way to %s: %s", r, what).
			WithHint("see what %s says", r.last().sshCommand())
	}
	h := r.hops[i]
	key := shown[len(shown)-1]
	e := &hostKeyError{hop: h, problem: keyUnknown, shown: key[1] + " " + key[2], files: h.knownHostsFiles()}
	if i > 0 {
		e.over = r.hops[i-1]
	}
	k, err := readKnownHosts(h)
	if err != nil {
		return tool.Errorf(tool.BackendUnavailable, "OpenSSH refuses the host key of %s (%s): %s, and %w", h, e.shown, what, err).
			WithHint("see what %s says", h.sshCommand())
	}
	for _, l := range k.known() {
		if l.key.Type() == key[1] {
			e.problem = keyChanged
			e.lines = append(e.lines, l)
		}
	}
	for _, l := range k.find(markerRevoked, k.name, k.bare) {
		if describe(l.key) == e.shown {
			e.problem, e.lines = keyRevoked, []knownLine{l}
			break
		}
	}
	if e.problem == keyChanged && slices.ContainsFunc(e.lines, func(l knownLine) bool { return describe(l.key) == e.shown }) {
		// The key is known: OpenSSH has other reasons, and says them.
		e.problem, e.why = keyInvalid, fmt.Errorf("OpenSSH says: %s", what)
	}
	return e.public()
}

// sshCommand is how a person connects to h, with more options where need be.
func (h *hop) sshCommand(options ...string) string {
	words := append([]string{"ssh"}, options...)
	if f := h.Asked.ConfigFile; f != "" {
		words = append(words, "-F", f)
	}
	if f := h.Asked.KnownHostsFile; f != "" {
		words = append(words, "-o", "UserKnownHostsFile="+f)
	}
	if h.Asked.User != "" {
		words = append(words, "-l", h.Asked.User)
	}
	if h.Asked.Port != 0 {
		words = append(words, "-p", fmt.Sprint(h.Asked.Port))
	}
	return Quote(append(words, h.Name)...)
}
