package ignore

import "strings"

// The outcomes of wildmatch: beside a plain failure there are two that spare
// the callers' loops a hopeless search, as in git's own matcher.
type outcome int

const (
	matched outcome = iota
	failed
	abortAll     // the text is used up: no later start can match
	abortToSlash // a "*" met a slash: only a "**" further out can go on
)

// wildmatch matches text against one of git's glob patterns. With pathname, a "*"
// or "?" does not match a slash, and "**" between slashes matches any number of
// directories.
func wildmatch(pattern, text string, pathname bool) bool {
	return dowild(pattern, text, pathname) == matched
}

// dowild follows git's wildmatch.c, whose every oddity ignore files rely on.
func dowild(p, text string, pathname bool) outcome {
	whole := p
	for len(p) > 0 {
		c := p[0]
		if len(text) == 0 && c != '*' {
			return abortAll
		}
		switch c {
		case '\\':
			if p = p[1:]; len(p) == 0 || text[0] != p[0] {
				return failed
			}
		case '?':
			if pathname && text[0] == '/' {
				return failed
			}
		case '*':
			before := len(whole) - len(p)
			return star(p, text, pathname, before == 0 || whole[before-1] == '/')
		case '[':
			rest, ok, valid := class(p[1:], text[0])
			if !valid {
				return abortAll
			}
			if !ok || pathname && text[0] == '/' {
				return failed
			}
			p, text = rest, text[1:]
			continue
		default:
			if text[0] != c {
				return failed
			}
		}
		p, text = p[1:], text[1:]
	}
	if len(text) > 0 {
		return failed
	}
	return matched
}

// star matches a pattern that begins with "*". atStart says that a slash or
// nothing stands before it.
func star(p, text string, pathname, atStart bool) outcome {
	rest := strings.TrimLeft(p, "*")
	crossesSlash := !pathname
	if pathname && atStart && len(p)-len(rest) > 1 && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
		// "**/" matches no directory at all too.
		if rest != "" && rest[0] == '/' && dowild(rest[1:], text, pathname) == matched {
			return matched
		}
		crossesSlash = true
	}
	if rest == "" {
		if !crossesSlash && strings.IndexByte(text, '/') >= 0 {
			return abortToSlash
		}
		return matched
	}
	if !crossesSlash && rest[0] == '/' {
		i := strings.IndexByte(text, '/')
		if i < 0 {
			return abortAll
		}
		return dowild(rest, text[i:], pathname)
	}
	for {
		if len(text) == 0 {
			return abortAll
		}
		if o := dowild(rest, text, pathname); o != failed {
			if !crossesSlash || o != abortToSlash {
				return o
			}
		} else if !crossesSlash && text[0] == '/' {
			return abortToSlash
		}
		text = text[1:]
	}
}

// class matches one byte against a bracket expression whose "[" is gone. It
// returns what follows the expression, and whether it is one at all.
func class(p string, c byte) (rest string, match, valid bool) {
	negated := false
	if p != "" && (p[0] == '!' || p[0] == '^') {
		negated = true
		p = p[1:]
	}
	var previous byte // the start of a possible range; 0 when there is none
	for first := true; ; first = false {
		if p == "" {
			return "", false, false
		}
		b := p[0]
		switch {
		case b == ']' && !first:
			return p[1:], match != negated, true
		case b == '-' && previous != 0 && len(p) > 1 && p[1] != ']':
			p = p[1:]
			high := p[0]
			if high == '\\' {
				if p = p[1:]; p == "" {
					return "", false, false
				}
				high = p[0]
			}
			if previous <= c && c <= high {
				match = true
			}
			previous = 0
			p = p[1:]
			continue
		case b == '\\':
			if p = p[1:]; p == "" {
				return "", false, false
			}
			b = p[0]
			if b == c {
				match = true
			}
		case b == '[' && len(p) > 1 && p[1] == ':':
			name, after, ok := strings.Cut(p[2:], "]")
			if !ok {
				return "", false, false
			}
			name, isClass := strings.CutSuffix(name, ":")
			if !isClass {
				// Not "[:name:]" but a set that holds "[" and ":".
				if c == '[' {
					match = true
				}
				previous = '['
				p = p[1:]
				continue
			}
			in, known := named(name, c)
			if !known {
				return "", false, false
			}
			match = match || in
			previous = 0
			p = after
			continue
		default:
			if b == c {
				match = true
			}
		}
		previous = b
		p = p[1:]
	}
}

// named reports whether c is in a POSIX character class.
func named(class string, c byte) (in, known bool) {
	upper := 'A' <= c && c <= 'Z'
	lower := 'a' <= c && c <= 'z'
	digit := '0' <= c && c <= '9'
	graph := '!' <= c && c <= '~'
	switch class {
	case "alnum":
		in = upper || lower || digit
	case "alpha":
		in = upper || lower
	case "blank":
		in = c == ' ' || c == '\t'
	case "cntrl":
		in = c < ' ' || c == 0x7f
	case "digit":
		in = digit
	case "graph":
		in = graph
	case "lower":
		in = lower
	case "print":
		in = graph || c == ' '
	case "punct":
		in = graph && !upper && !lower && !digit
	case "space":
		in = c == ' ' || '\t' <= c && c <= '\r'
	case "upper":
		in = upper
	case "xdigit":
		in = digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	default:
		return false, false
	}
	return in, true
}
