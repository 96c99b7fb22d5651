package connection

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// settings are what `ssh -G` says about one host: values by keyword in lower
// case. Keywords that are given several times have several values.
type settings map[string][]string

// parseSettings reads the output of `ssh -G`.
func parseSettings(out string) settings {
	s := make(settings)
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		keyword, value, _ := strings.Cut(line, " ")
		if keyword == "" {
			continue
		}
		keyword = strings.ToLower(keyword)
		s[keyword] = append(s[keyword], value)
	}
	return s
}

// get is the value of a keyword, or empty.
func (s settings) get(keyword string) string {
	if values := s[keyword]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// set is the value of a keyword unless it is none.
func (s settings) set(keyword string) string {
	if v := s.get(keyword); !strings.EqualFold(v, "none") {
		return v
	}
	return ""
}

// yes reports whether a keyword is switched on.
func (s settings) yes(keyword string) bool { return on(s.get(keyword)) }

func on(value string) bool {
	return strings.EqualFold(value, "yes") || strings.EqualFold(value, "true")
}

// number is the value of a keyword, or otherwise.
func (s settings) number(keyword string, otherwise int) int {
	n, err := strconv.Atoi(s.get(keyword))
	if err != nil || n <= 0 {
		return otherwise
	}
	return n
}

// timeout is how long one hop may take.
func (s settings) timeout() time.Duration {
	if n := s.number("connecttimeout", 0); n > 0 {
		return time.Duration(n) * time.Second
	}
	return handshakeTimeout
}

// A treatment says what is made of a directive.
type treatment struct {
	// suits reports whether this process can do as a value says; nil: always.
	suits func(value string) bool
	// why says, when it does not, what OpenSSH has to do.
	why string
}

// moot is a directive that has no bearing on reaching a machine, or that is
// overruled here because host keys are always checked strictly and nothing of
// the user's is forwarded.
var moot = treatment{}

// honoured is a directive that this process follows.
var honoured = treatment{}

// only is a directive that this process can follow for these values.
func only(why string, values ...string) treatment {
	return treatment{why: why, suits: func(value string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, value) })
	}}
}

// algorithms is a list of algorithms of which at least one must be known here.
func algorithms(why string, known func(ssh.Algorithms) []string) treatment {
	return treatment{why: why, suits: func(value string) bool { return len(usable(value, known)) > 0 }}
}

// usable are those algorithms of a list, in its order, that x/crypto has. The
// insecure ones are in the list only if the user put them there.
func usable(list string, known func(ssh.Algorithms) []string) []string {
	have := append(known(ssh.SupportedAlgorithms()), known(ssh.InsecureAlgorithms())...)
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		if slices.Contains(have, name) {
			out = append(out, name)
		}
	}
	return out
}

func kexOf(a ssh.Algorithms) []string     { return a.KeyExchanges }
func ciphersOf(a ssh.Algorithms) []string { return a.Ciphers }
func macsOf(a ssh.Algorithms) []string    { return a.MACs }
func hostKeysOf(a ssh.Algorithms) []string {
	return a.HostKeys
}

// treatments is every directive that `ssh -G` of OpenSSH 6.8 to 10 prints. One
// that is missing here is compared with what an empty configuration gives: see
// [resolver.strange].
func treatments() map[string]treatment {
	none := func(why string) treatment { return only(why, "none", "") }
	return map[string]treatment{
		// Where to, and as whom.
		"host": honoured, "hostname": honoured, "port": honoured, "user": honoured,
		"addressfamily": honoured, "bindaddress": honoured, "connecttimeout": honoured, "connectionattempts": honoured,
		"proxyjump": honoured,
		// Already applied by ssh -G, which resolves the name with them.
		"canonicalizefallbacklocal": moot, "canonicalizehostname": moot, "canonicalizemaxdots": moot,
		"canonicaldomains": moot, "canonicalizepermittedcnames": moot, "tag": moot,
		"bindinterface":  none("BindInterface"),
		"proxycommand":   none("ProxyCommand"),
		"proxyusefdpass": only("ProxyUseFdpass", "no", "false"),
		"compression":    only("Compression", "no", "false"),

		// Who the machine is.
		"userknownhostsfile": honoured, "globalknownhostsfile": honoured, "hostkeyalias": honoured,
		"hostkeyalgorithms": algorithms("HostKeyAlgorithms", hostKeysOf), "requiredrsasize": honoured,
		"casignaturealgorithms": honoured,
		"knownhostscommand":     none("KnownHostsCommand"),
		"revokedhostkeys":       none("RevokedHostKeys"),
		// Strict checking against known hosts takes the place of these.
		"stricthostkeychecking": moot, "updatehostkeys": moot, "verifyhostkeydns": moot,
		"nohostauthenticationforlocalhost": moot, "checkhostip": moot,
		"hashknownhosts": moot, "visualhostkey": moot, "fingerprinthash": moot,

		// How it is spoken to.
		"kexalgorithms": algorithms("KexAlgorithms", kexOf), "ciphers": algorithms("Ciphers", ciphersOf),
		"macs": algorithms("MACs", macsOf), "rekeylimit": moot, "ipqos": moot, "tcpkeepalive": moot,
		"serveraliveinterval": moot, "serveralivecountmax": moot, "protocol": moot,
		"warnweakcrypto": moot, "warnweakhostkey": moot,
		"refuseconnection": none("RefuseConnection"),

		// Who the user is. What this process cannot do is tried by OpenSSH once
		// the keys were refused.
		"identityfile": honoured, "certificatefile": honoured, "identityagent": honoured, "identitiesonly": honoured,
		"pubkeyacceptedalgorithms": honoured, "pubkeyacceptedkeytypes": honoured,
		"pubkeyauthentication":     only("PubkeyAuthentication", "yes", "true", "unbound", "host-bound"),
		"preferredauthentications": {suits: func(v string) bool { return slices.Contains(strings.Split(v, ","), publicKey) }, why: "PreferredAuthentications"},
		"pkcs11provider":           none("PKCS11Provider"),
		"securitykeyprovider":      only("SecurityKeyProvider", "internal", "none", "$SSH_SK_PROVIDER"),
		"gssapiauthentication":     moot, "hostbasedauthentication": moot, "kbdinteractiveauthentication": moot,
		"challengeresponseauthentication": moot, "passwordauthentication": moot, "kbdinteractivedevices": moot,
		"gssapikeyexchange": only("GSSAPIKeyExchange", "no", "false"), "gssapidelegatecredentials": moot, "gssapitrustdns": moot,
		"gssapirenewalforcesrekey": moot, "gssapikexalgorithms": moot, "gssapiclientidentity": moot, "gssapiserveridentity": moot,
		"hostbasedacceptedalgorithms": moot, "hostbasedkeytypes": moot, "enablesshkeysign": moot,
		"numberofpasswordprompts": moot, "batchmode": moot, "addkeystoagent": moot,
		"rsaauthentication": moot, "rhostsrsaauthentication": moot, "useprivilegedport": moot,

		// What is done once it is reached, which is not the configuration's here.
		"sendenv": honoured, "setenv": honoured,
		"controlmaster": moot, "controlpath": moot, "controlpersist": moot, "clearallforwardings": moot,
		"exitonforwardfailure": moot, "forwardagent": moot, "forwardx11": moot, "forwardx11trusted": moot,
		"forwardx11timeout": moot, "gatewayports": moot, "localforward": moot, "remoteforward": moot, "dynamicforward": moot,
		"permitremoteopen": moot, "tunnel": moot, "tunneldevice": moot, "localcommand": moot, "permitlocalcommand": moot,
		"remotecommand": moot, "requesttty": moot, "sessiontype": moot, "stdinnull": moot, "forkafterauthentication": moot,
		"escapechar": moot, "enableescapecommandline": moot, "streamlocalbindmask": moot, "streamlocalbindunlink": moot,
		"xauthlocation": moot, "loglevel": moot, "logverbose": moot, "syslogfacility": moot,
		"obscurekeystroketiming": moot, "channeltimeout": moot, "ignoreunknown": moot,
	}
}

// beyond is the directive, if there is one, for which OpenSSH itself is needed;
// and the directives that nothing is known about.
func (s settings) beyond() (why string, unknown []string) {
	known := treatments()
	for keyword, values := range s {
		t, ok := known[keyword]
		if !ok {
			unknown = append(unknown, keyword)
			continue
		}
		if t.suits != nil && !t.suits(values[0]) && (why == "" || t.why < why) {
			why = t.why
		}
	}
	slices.Sort(unknown)
	return why, unknown
}

// paths splits the value of a keyword that takes several paths. ssh -G prints
// them with blanks in between and without quotes, so that a path with a blank
// is told from two paths only by what exists.
func (s settings) paths(keyword string, exists func(string) bool) []string {
	words := strings.Fields(s.get(keyword))
	var out []string
	for len(words) > 0 {
		n := 1
		for i := len(words); i > 1; i-- {
			if exists(strings.Join(words[:i], " ")) {
				n = i
				break
			}
		}
		if path := strings.Join(words[:n], " "); !strings.EqualFold(path, "none") {
			out = append(out, path)
		}
		words = words[n:]
	}
	return out
}
