package guard

import (
	"slices"
	"strings"
)

// stops end a call without brackets.
var stops = strings.Fields("or and if unless while until for do then end")

// commandNames are the names of arguments that are the command itself.
var commandNames = []string{"args", "cmd", "command"}

// arguments are what a function is given in the text behind its name: texts that stand there,
// and marks for what does not. Lists are taken apart; options are left out. None are no call.
func (l language) arguments(text string) []field {
	text = strings.TrimLeft(text, " \t")
	if l.bare { // a handle that is declared here
		text = strings.TrimPrefix(strings.TrimPrefix(text, "my "), "our ")
	}
	if text == "" {
		return nil
	}
	s := &callScanner{language: l, text: text[:min(len(text), maxCall)]}
	switch first := text[0]; {
	case first == '(':
		s.at, s.brackets = 1, true
	case strings.HasPrefix(text, "[["), strings.IndexByte("\"'`", first) >= 0:
	case !l.bare:
		return nil
	case strings.IndexByte("$@<{", first) >= 0 && len(text) > 1:
	case s.opening(0).length > 0, strings.HasPrefix(text, "join "), strings.HasPrefix(text, "join("), lonely(text):
	default:
		return nil
	}
	s.scan()
	return s.fields
}

// lonely reports whether a name stands at the beginning, and no more words of a sentence.
func lonely(text string) bool {
	end := 0
	for end < len(text) && isName(text[end:end+1]) {
		end++
	}
	rest := strings.TrimLeft(text[end:], " \t")
	return end > 0 && (text[0] < '0' || text[0] > '9') && (rest == "" || strings.IndexByte(";,})\n.+[(", rest[0]) >= 0)
}

// callScanner takes the arguments of a call apart.
type callScanner struct {
	language
	text     string
	at       int
	brackets bool // the call has some, and ends with them
	fields   []field

	cur     strings.Builder // the argument
	begun   bool
	literal bool // a text stands in it
	many    bool // it may be several
}

// scan goes through the text to the end of the call.
func (s *callScanner) scan() {
	lists := 0
	for s.at < len(s.text) {
		if s.quoted() {
			continue
		}
		switch c := s.text[s.at]; {
		case s.spaced && lists == 0 && strings.IndexByte(" \t\n", c) >= 0:
			s.end()
		case strings.IndexByte(" \t\r", c) >= 0, c == '\n' && (s.brackets || lists > 0):
		case c == '[' && !s.begun:
			lists++
		case c == ']' && lists > 0:
			s.end()
			lists--
		case c == ',':
			s.end()
		case c == '{' && !s.begun:
			s.options()
			continue
		case strings.IndexByte("([{", c) >= 0:
			s.unknown()
			s.pass()
			continue
		case strings.IndexByte(")]}\n", c) >= 0, c == ';' && !s.brackets:
			s.end()
			return
		case c == '=' && s.begun && !s.literal && !strings.HasPrefix(s.text[s.at:], "=="):
			s.keyword()
			continue
		case strings.IndexByte("+~\\", c) >= 0, c == '.' && !s.name(s.at+1):
			// They put texts together.
		case !s.begun && (c == '*' || c == '@'):
			s.many = true
			s.unknown()
		case s.name(s.at):
			if s.word() {
				s.end()
				return
			}
			continue
		default:
			s.unknown()
		}
		s.at++
	}
	if len(s.text) == maxCall {
		s.unknown()
	}
	s.end()
}

// word passes over a word, and reports whether the call ends before it.
func (s *callScanner) word() bool {
	end := s.at
	for s.name(end) {
		end++
	}
	if !s.brackets && slices.Contains(stops, s.text[s.at:end]) {
		return true
	}
	s.unknown()
	s.at = end
	return false
}

func (s *callScanner) name(i int) bool { return i < len(s.text) && isName(s.text[i:i+1]) }

// unknown notes that something stands here that is no text.
func (s *callScanner) unknown() {
	s.begun = true
	if !strings.HasSuffix(s.cur.String(), string(anything)) {
		s.cur.WriteRune(anything)
	}
}

// end ends an argument.
func (s *callScanner) end() {
	if s.begun {
		s.fields = append(s.fields, field{text: s.cur.String(), many: s.many})
	}
	s.drop()
}

func (s *callScanner) drop() {
	s.cur.Reset()
	s.begun, s.literal, s.many = false, false, false
}

// pass passes over what stands in brackets, of which one opens here, and reports whether
// arguments are named in it.
func (s *callScanner) pass() bool {
	inner := callScanner{language: s.language, text: s.text, at: s.at}
	for depth := 0; inner.at < len(s.text); {
		if inner.quoted() {
			continue
		}
		switch s.text[inner.at] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if inner.at++; depth <= 0 {
			break
		}
	}
	within := s.text[s.at:inner.at]
	s.at = inner.at
	return strings.Contains(within, "args")
}

// options passes over an object. One that holds arguments stands for them.
func (s *callScanner) options() {
	if s.pass() {
		s.fields = append(s.fields, field{text: string(anything), many: true})
	}
}

// keyword takes name= for what it is: that of the command itself is left out, and any other
// one with its value.
func (s *callScanner) keyword() {
	from := strings.LastIndexAny(s.text[:s.at], ",([ \t\n") + 1
	name := s.text[from:s.at]
	s.drop()
	s.at++
	if slices.Contains(commandNames, name) {
		return
	}
	for s.at < len(s.text) && strings.IndexByte(",)\n;", s.text[s.at]) < 0 {
		switch {
		case s.quoted():
		case strings.IndexByte("([{", s.text[s.at]) >= 0:
			s.pass()
		default:
			s.at++
		}
	}
	s.drop()
}

// opening is how a text in quotes begins.
type opening struct {
	length  int    // of the quotes with what stands before them, 0 where there are none
	closing string // what ends it
	raw     bool   // a backslash is one
	single  bool   // of two kinds of quotes, those in which nothing is put in
	braces  bool   // what stands in braces is put in
}

// opening is how a text begins at i, if one does.
func (s *callScanner) opening(i int) opening {
	rest := s.text[i:]
	within := i > 0 && s.name(i-1)
	if strings.HasPrefix(rest, "[[") && !s.bare {
		return opening{length: 2, closing: "]]", raw: true}
	}
	if s.bare && !within && rest[0] == 'q' {
		return quoteLike(rest)
	}
	n := 0
	for n < 2 && n < len(rest) && strings.IndexByte("fFrRbBuU", rest[n]) >= 0 {
		n++
	}
	prefix := strings.ToLower(rest[:n])
	if n >= len(rest) || strings.IndexByte("\"'`", rest[n]) < 0 || n > 0 && (within || rest[n] == '`') {
		return opening{}
	}
	o := opening{length: n + 1, closing: rest[n : n+1], raw: strings.Contains(prefix, "r"), braces: strings.Contains(prefix, "f"), single: rest[n] == '\''}
	if triple := strings.Repeat(o.closing, 3); o.closing != "`" && strings.HasPrefix(rest[n:], triple) {
		o.length, o.closing = n+3, triple
	}
	return o
}

// quoteLike is the beginning of q(…), qq{…} and qw[…].
func quoteLike(rest string) opening {
	n := 1
	if strings.HasPrefix(rest, "qq") || strings.HasPrefix(rest, "qw") {
		n = 2
	}
	if n >= len(rest) {
		return opening{}
	}
	at := strings.IndexByte("([{</|!#", rest[n])
	if at < 0 {
		return opening{}
	}
	return opening{length: n + 1, closing: ")]}>/|!#"[at : at+1], single: rest[1] != 'q'}
}

// quoted takes a text in quotes that stands here, and reports whether there is one.
func (s *callScanner) quoted() bool {
	o := s.opening(s.at)
	if o.length == 0 {
		return false
	}
	begin := s.at + o.length
	end := begin
	for end < len(s.text) && !strings.HasPrefix(s.text[end:], o.closing) {
		if s.text[end] == '\\' && !o.raw {
			end++
		}
		end++
	}
	end = min(end, len(s.text))
	text := s.text[begin:end]
	switch {
	case o.raw:
	case o.single && (s.language.named || s.bare):
		text = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(text)
	case o.single:
		text = unescape(text, true)
	default:
		text = unescape(s.filled(text), true)
	}
	if o.braces {
		text = inBraces(text)
	}
	s.cur.WriteString(text)
	s.begun, s.literal = true, true
	s.at = min(end+len(o.closing), len(s.text))
	return true
}
