package eventlog

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// redacted stands for what was taken out.
const redacted = "[redacted]"

// redactor takes secrets out of texts. It is one goroutine's.
type redactor struct {
	values func() []string
	now    func() time.Time

	replacer *strings.Replacer
	asked    time.Time
}

// patterns are what secrets look like, and what is left of them: words that come
// before a secret stay. They are compiled when the first text is searched.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), redacted},
		{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + redacted},
		{regexp.MustCompile(`(?i)([a-z0-9_-]*(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|credentials?|authorization)[a-z0-9_-]*["']?\s*[:=]\s*)(?:"[^"]*"|'[^']*'|[^\s"',;&]+)`), "$1" + redacted},
		{regexp.MustCompile(`(?i)(--?(?:token|secret|password|passwd|pass|api-?key)\s+)\S+`), "$1" + redacted},
		{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*):[^/\s@]+@`), "$1:" + redacted + "@"},
		{regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|pk_|rk_|AKIA|ASIA|AIza|npm_|dckr_pat_|hf_)[A-Za-z0-9_-]{10,}`), redacted},
		{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), redacted},
	}
})

// quoted is what an error quotes.
var quoted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\"")
})

// printed is what an error tells at its end of a program's output.
var printed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(it|and) said: [\s\S]*`) })

// withoutGiven is an error's text without what a call was given and what its program
// printed, as far as the error says which that is. The file that it is about is given,
// too: the text of an adapter need not quote it.
func withoutGiven(text, about string) string {
	text = quoted().ReplaceAllString(text, `"…"`)
	text = withoutWord(text, about)
	return printed().ReplaceAllString(text, "$1 said: …")
}

// withoutWord is the text without a name, wherever that is not a part of another word. A
// name of one letter stays: it tells nothing, and may be a word of the sentence.
func withoutWord(text, name string) string {
	if utf8.RuneCountInString(name) < 2 {
		return text
	}
	first, size := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	var out strings.Builder
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			out.WriteString(text[from:])
			return out.String()
		}
		i += from
		end := i + len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if inWord(first) && inWord(before) || inWord(last) && inWord(after) {
			end = i + size
			out.WriteString(text[from:end])
		} else {
			out.WriteString(text[from:i] + "…")
		}
		from = end
	}
}

// inWord reports whether a character goes on with the word beside it.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-'
}

// fileOf is the file of an environment that the path of an error names: not a member of
// arguments or of a configuration, and nothing absolute, which may be the service's own.
func fileOf(of string) string {
	if name, input := strings.CutPrefix(of, "inputFiles."); input {
		return name
	}
	if !strings.Contains(of, "/") || path.IsAbs(of) || filepath.IsAbs(of) {
		return ""
	}
	return of
}

type pattern struct {
	re   *regexp.Regexp
	left string
}

// redact is the text without what is a secret, or looks like one.
func (r *redactor) redact(text string) string {
	if text == "" {
		return ""
	}
	text = r.known().Replace(text)
	for _, p := range patterns() {
		text = p.re.ReplaceAllString(text, p.left)
	}
	return text
}

// known replaces the values that are secrets now.
func (r *redactor) known() *strings.Replacer {
	if r.replacer != nil && r.now().Sub(r.asked) < secretsAge {
		return r.replacer
	}
	var values []string
	if r.values != nil {
		values = slices.Clone(r.values())
	}
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecret })
	// Of two that begin alike the longer one goes first.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, redacted)
	}
	r.replacer, r.asked = strings.NewReplacer(pairs...), r.now()
	return r.replacer
}

// SecretName reports whether a variable of this name holds a secret, as far as a
// name can tell.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "AUTH"} {
		if strings.Contains(name, word) && name != "SSH_AUTH_SOCK" && name != "XAUTHORITY" {
			return true
		}
	}
	return false
}
