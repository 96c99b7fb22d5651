package profile

import (
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// WorkspaceFolder stands in host paths for the folder that the editor opened.
const WorkspaceFolder = "${workspaceFolder}"

func notEmpty(s string) *Error {
	if s == "" {
		return wrong("must not be empty")
	}
	return nil
}

func noNUL(s string) *Error {
	if strings.ContainsRune(s, 0) {
		return wrong("must not hold a NUL character")
	}
	return nil
}

// insidePath accepts an absolute, clean path inside an environment, which is
// always written with slashes.
func insidePath(s string) *Error {
	if !path.IsAbs(s) || path.Clean(s) != s {
		return wrong("must be an absolute path without . , .. or a slash at its end, not %q", s)
	}
	return nil
}

// mountTarget accepts where a host folder may stand in an environment.
func mountTarget(s string) *Error {
	if err := insidePath(s); err != nil {
		return err
	}
	for _, taken := range []string{"/", "/proc", "/sys", "/dev", "/.caisson"} {
		if s == taken || taken != "/" && strings.HasPrefix(s, taken+"/") {
			return wrong("nothing can be mounted at %s", s)
		}
	}
	return nil
}

// hostPath accepts an absolute path of the host, also one that begins with the
// opened folder.
func hostPath(s string) *Error {
	rest, folder := strings.CutPrefix(s, WorkspaceFolder)
	switch {
	case strings.Contains(rest, "${"):
		return wrong("only %s at the beginning is replaced, in %q", WorkspaceFolder, s)
	case folder && rest != "" && rest[0] != '/' && rest[0] != '\\':
		return wrong("after %s a slash must follow, in %q", WorkspaceFolder, s)
	case !folder && !filepath.IsAbs(s) && !path.IsAbs(s):
		return wrong("must be an absolute path of this host, or begin with %s, not %q", WorkspaceFolder, s)
	}
	return nil
}

// hostFile accepts a file of the host, which may be below the home
// directory.
func hostFile(s string) *Error {
	if filepath.IsAbs(s) || path.IsAbs(s) || strings.HasPrefix(s, "~/") {
		return nil
	}
	return wrong("must be an absolute path of this host or begin with ~/, not %q", s)
}

func variableName(s string) *Error {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return wrong("%q cannot be the name of a variable", s)
		}
	}
	return notEmpty(s)
}

// hostName accepts the name of a host that traffic may go to; a leading "*."
// stands for any host below.
func hostName(s string) *Error {
	for label := range strings.SplitSeq(strings.TrimPrefix(s, "*."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return wrong("%q is not the name of a host", s)
		}
	}
	return nil
}

// sshHost accepts what can be given to ssh as a host and never as an option.
func sshHost(s string) *Error {
	if strings.HasPrefix(s, "-") || strings.ContainsAny(s, " \t\r\n'\"`$\\;|&<>(){}") {
		return wrong("%q is not the name of a host", s)
	}
	return nil
}

func userName(s string) *Error {
	if strings.HasPrefix(s, "-") || strings.ContainsAny(s, " \t\r\n@/") {
		return wrong("%q is not a user", s)
	}
	return nil
}

func imageName(s string) *Error {
	if strings.HasPrefix(s, "-") || strings.ContainsAny(s, " \t\r\n") {
		return wrong("%q is not the name of an image", s)
	}
	return nil
}

// platformName accepts os/architecture, with a variant or without.
func platformName(s string) *Error {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 {
		return wrong(`must be a platform such as "linux/arm64", not %q`, s)
	}
	for _, part := range parts {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return wrong(`must be a platform such as "linux/arm64", not %q`, s)
		}
	}
	return nil
}

func dockerHost(s string) *Error {
	scheme, rest, ok := strings.Cut(s, "://")
	switch scheme {
	case "unix", "npipe", "tcp", "http", "https", "ssh":
		if ok && rest != "" {
			return nil
		}
	}
	return wrong(`must be an endpoint such as "unix:///var/run/docker.sock", not %q`, s)
}

// NamePattern is the regular expression of the names of profiles.
const NamePattern = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`

var profileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(NamePattern) })

// CheckName says why a profile of the user's cannot have this name, or nil.
func CheckName(name string) error {
	switch {
	case name == Local:
		return wrong("the profile %q is built in and cannot be defined", Local)
	case !profileName().MatchString(name):
		return wrong("%q cannot be the name of a profile: it must begin with a letter or digit and hold at most 64 letters, digits, _ . and -", name)
	}
	return nil
}

// mountList reads mounts, each an object of known members.
func mountList() kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			objects, err := objectList(v, "source", "target", "readonly")
			if err != nil {
				return err
			}
			for i, raw := range objects {
				var m Mount
				if err := json.Unmarshal(raw, &m); err != nil {
					return wrong(`must be {"source", "target", "readonly"}: two strings and a bool`).below(strconv.Itoa(i))
				}
				if err := hostPath(m.Source).below("source"); err != nil {
					return err.below(strconv.Itoa(i))
				}
				if err := mountTarget(m.Target).below("target"); err != nil {
					return err.below(strconv.Itoa(i))
				}
				for _, other := range p.Mounts {
					if other.Target == m.Target {
						return at("target", "two mounts at %s", m.Target).below(strconv.Itoa(i))
					}
				}
				p.Mounts = append(p.Mounts, m)
			}
			return nil
		},
		schema: func() *jsonschema.Schema {
			return &jsonschema.Schema{Type: "array", Items: objectSchema([]string{"source", "target"}, "source", "target", "readonly")}
		},
	}
}

// jobDirectory is where the guest of a job has its own directory.
const jobDirectory = "/job"

// guestPath accepts where a host folder may stand for WebAssembly guests.
func guestPath(s string) *Error {
	if err := insidePath(s); err != nil {
		return err
	}
	if s == jobDirectory || strings.HasPrefix(s, jobDirectory+"/") {
		return wrong("nothing can be mounted at %s, which is a job's own directory", s)
	}
	return nil
}

// preopenList reads preopens, each an object or "guest::host[:ro]".
func preopenList() kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			items, err := value[[]json.RawMessage](v, "a list")
			if err != nil {
				return err
			}
			for i, raw := range items {
				o, err := preopen(jsontext.Value(raw))
				if err == nil {
					err = hostPath(o.Host).below("host")
				}
				if err == nil {
					err = guestPath(o.Guest).below("guest")
				}
				for _, other := range p.Preopens {
					if err == nil && other.Guest == o.Guest {
						err = wrong("two directories at %s", o.Guest)
					}
				}
				if err != nil {
					return err.below(strconv.Itoa(i))
				}
				p.Preopens = append(p.Preopens, o)
			}
			return nil
		},
		schema: func() *jsonschema.Schema {
			return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{OneOf: []*jsonschema.Schema{
				{Type: "string", Pattern: `^/.*::.+$`},
				objectSchema([]string{"host", "guest"}, "host", "guest", "readonly"),
			}}}
		},
	}
}

func preopen(v jsontext.Value) (Preopen, *Error) {
	const form = `must be {"host", "guest", "readonly"} or "guest::host[:ro]"`
	var o Preopen
	if v.Kind() == '{' {
		if err := known(v, "host", "guest", "readonly"); err != nil {
			return o, err
		}
		if json.Unmarshal(v, &o) != nil {
			return o, wrong(form)
		}
		return o, nil
	}
	s, err := value[string](v, "a string or an object")
	if err != nil {
		return o, err
	}
	guest, host, ok := strings.Cut(s, "::")
	if !ok {
		return o, wrong(form)
	}
	host, o.ReadOnly = strings.CutSuffix(host, ":ro")
	o.Guest, o.Host = guest, host
	return o, nil
}

// objectList reads a list of objects that have no other members than these.
func objectList(v jsontext.Value, members ...string) ([]json.RawMessage, *Error) {
	items, err := value[[]json.RawMessage](v, "a list of objects")
	if err != nil {
		return nil, err
	}
	for i, raw := range items {
		if err := known(jsontext.Value(raw), members...); err != nil {
			return nil, err.below(strconv.Itoa(i))
		}
	}
	return items, nil
}

// known accepts an object that has no other members than these.
func known(v jsontext.Value, members ...string) *Error {
	written, err := object(v)
	if err != nil {
		return err
	}
	for _, w := range written {
		if !slices.Contains(members, w.name) {
			err := at(w.name, "unknown member %q", w.name)
			err.Suggestion = Nearest(w.name, members)
			return err
		}
	}
	return nil
}

// objectSchema describes a mount or a preopen.
func objectSchema(required []string, members ...string) *jsonschema.Schema {
	described := map[string]string{
		"source": "The folder of this machine; ${workspaceFolder} stands for the opened one.", "target": "Where the environment sees it, an absolute path.",
		"host": "The folder of this machine.", "guest": "Where the guest sees it, an absolute path.", "readonly": "Nothing can be written there. Default false.",
	}
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{}, PropertyOrder: members,
		Required: required, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, m := range members {
		s.Properties[m] = &jsonschema.Schema{Type: "string", Description: described[m]}
		if m == "readonly" {
			s.Properties[m].Type = "boolean"
		}
	}
	return s
}
