package guard

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// splitter collects the fields that one word becomes.
type splitter struct {
	ifs    string
	assign bool // neither splitting nor file names: the value of an assignment
	fields []field
	cur    strings.Builder
	begun  bool // there is a field, if only an empty one
	many   bool
	output *string
	// instead is the field up to rest with the default of a variable that may be set
	// in its place, "" when there is none.
	instead string
	rest    int
}

// quoted adds text that stays as it is.
func (b *splitter) quoted(text string) {
	b.cur.WriteString(text)
	b.begun = true
}

// pattern adds unquoted text of the line: its globs are globs.
func (b *splitter) pattern(text string) {
	if text == "" {
		return
	}
	if b.assign {
		b.quoted(text)
		return
	}
	b.quoted(globbed(text))
}

// split adds what an unquoted expansion gave.
func (b *splitter) split(text string) {
	if b.assign {
		b.quoted(text)
		return
	}
	for _, r := range text {
		if strings.ContainsRune(b.ifs, r) {
			b.end()
			continue
		}
		if r == anything || r == outside {
			b.many = true
		}
		b.cur.WriteString(globbed(string(r)))
		b.begun = true
	}
}

// end ends the field, if there is one.
func (b *splitter) end() {
	if b.begun {
		text := b.cur.String()
		b.fields = append(b.fields, field{text: limited(text), many: b.many, output: b.output})
		if b.instead != "" {
			// A path that stands in the line counts as well as what is not known.
			b.fields = append(b.fields, field{text: limited(b.instead + text[b.rest:])})
		}
	}
	b.cur.Reset()
	b.instead = ""
	b.begun, b.many, b.output = false, false, nil
}

// fields expands words as the arguments of a command.
func (w *walker) fields(sh *shell, words []*syntax.Word) []field {
	var all []field
	for _, word := range words {
		for _, one := range w.braces(word) {
			if w.words++; w.words > maxExpansions {
				w.spend()
				return append(all, field{text: string(anything), many: true})
			}
			b := &splitter{ifs: separators(sh)}
			w.parts(sh, b, one.Parts, false)
			b.end()
			for _, f := range b.fields {
				w.bytes += len(f.text)
			}
			w.words += max(0, len(b.fields)-1)
			all = append(all, b.fields...)
		}
	}
	return all
}

// separators are the characters that split words.
func separators(sh *shell) string {
	if ifs := sh.lookup("IFS"); known(ifs) {
		return ifs
	}
	return " \t\n"
}

// value expands a word as one text.
func (w *walker) value(sh *shell, word *syntax.Word) string {
	if word == nil {
		return ""
	}
	b := &splitter{assign: true, ifs: separators(sh)}
	w.parts(sh, b, word.Parts, false)
	w.bytes += b.cur.Len()
	return limited(b.cur.String())
}

// parts expands the parts of a word.
func (w *walker) parts(sh *shell, b *splitter, parts []syntax.WordPart, quoted bool) {
	for i, part := range parts {
		if b.cur.Len() > maxText || w.spent {
			b.cur.Reset()
			b.split(string(anything))
			return
		}
		switch part := part.(type) {
		case *syntax.Lit:
			w.lit(sh, b, part.Value, i == 0, quoted)
		case *syntax.SglQuoted:
			if part.Dollar {
				b.quoted(unescape(part.Value, true))
			} else {
				b.quoted(part.Value)
			}
		case *syntax.DblQuoted:
			b.begun = b.begun || len(part.Parts) != 1 || !isList(part.Parts)
			w.parts(sh, b, part.Parts, true)
		case *syntax.ParamExp:
			w.parameter(sh, b, part, quoted)
		case *syntax.CmdSubst:
			out := strings.ReplaceAll(w.substitution(sh, part.Stmts), "\x00", "")
			b.insert(strings.TrimRight(out, "\n"), quoted)
		case *syntax.ArithmExp:
			w.arithmetic(sh, part.X)
			b.insert(string(outside), true) // a number
		case *syntax.ProcSubst:
			out := w.substitution(sh, part.Stmts)
			if len(part.Stmts) == 0 {
				continue // which bash takes for nothing at all
			}
			b.quoted("/dev/fd/63")
			if part.Op == syntax.CmdIn {
				b.output = &out
			}
		case *syntax.ExtGlob:
			b.quoted(string(anyChars))
		case *syntax.BraceExp: // in a place where it is not expanded
			b.quoted(string(anything))
		default:
			b.insert(string(anything), quoted)
		}
	}
}

func (b *splitter) insert(text string, quoted bool) {
	if quoted {
		b.quoted(text)
	} else {
		b.split(text)
	}
}

// lit expands text that stands in the line.
func (w *walker) lit(sh *shell, b *splitter, text string, first, quoted bool) {
	if quoted {
		b.quoted(unquoteDouble(text))
		return
	}
	if first && strings.HasPrefix(text, "~") && !b.begun {
		name, rest, slash := strings.Cut(text, "/")
		switch {
		case strings.ContainsAny(name, `\"'`):
		case name == "~":
			b.quoted(sh.lookup("HOME"))
		case name == "~+":
			b.quoted(sh.dir)
		case name == "~-":
			b.quoted(string(anything))
		case name == "~root":
			b.quoted("/root")
		default:
			b.quoted(string(home))
		}
		if !strings.ContainsAny(name, `\"'`) {
			text = rest
			if slash {
				text = "/" + rest
			}
		}
	}
	var run strings.Builder
	flush := func() {
		b.pattern(run.String())
		run.Reset()
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 >= len(text) {
			run.WriteByte(text[i])
			continue
		}
		flush()
		i++
		if text[i] == '\n' {
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		b.quoted(text[i : i+n])
		i += n - 1
	}
	flush()
}

// isList reports whether the only part is "$@" or "${array[@]}", which may be no
// field at all.
func isList(parts []syntax.WordPart) bool {
	p, ok := parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && (p.Param.Value == "@" || indexWord(p.Index) == "@")
}

// parameter expands $x and all that can be made of it.
func (w *walker) parameter(sh *shell, b *splitter, p *syntax.ParamExp, quoted bool) {
	if p.Param == nil || p.Names != 0 || p.Flags != nil || p.NestedParam != nil {
		b.insert(string(anything), quoted)
		return
	}
	w.inside(sh, p)
	if p.Length || p.Width || p.IsSet {
		b.insert(string(outside), true) // a number
		return
	}
	name, index := p.Param.Value, indexWord(p.Index)
	v, set := sh.vars[name]
	plain := p.Slice == nil && p.Repl == nil && p.Exp == nil && !p.Excl
	if name == "@" || name == "*" || index == "@" || index == "*" {
		list := sh.params
		if name != "@" && name != "*" {
			list = []field{{text: string(outside), many: true}}
			if set {
				list = literal(v.list)
			}
		}
		if !plain {
			// What runs in it runs, whatever it makes of the list.
			if p.Exp != nil {
				w.value(sh, p.Exp.Word)
			}
			if p.Repl != nil {
				w.value(sh, p.Repl.Orig)
				w.value(sh, p.Repl.With)
			}
			list = []field{{text: string(anything), many: true}}
		}
		w.list(b, list, quoted, name == "@" || index == "@")
		return
	}
	text := sh.lookup(name)
	if p.Excl {
		if known(text) && syntax.ValidName(text) {
			text = sh.lookup(text)
		} else {
			text = string(anything)
		}
	}
	if p.Index != nil {
		i, err := strconv.Atoi(index)
		switch {
		case !set:
			text = string(outside)
		case err == nil && i >= 0 && i < len(v.list) && known(strings.Join(v.list, "")):
			text = v.list[i]
		default:
			text = string(anything)
		}
	}
	before, out := b.cur.String(), w.operate(sh, p, text, set)
	b.insert(out, quoted)
	if out == string(solid) && !b.assign && b.instead == "" && p.Exp != nil {
		if word := w.value(sh, p.Exp.Word); absolute(word) {
			b.instead, b.rest = before+word, b.cur.Len()
		}
	}
}

// joint is what stands between words that become one.
func (b *splitter) joint() string {
	_, n := utf8.DecodeRuneInString(b.ifs)
	return b.ifs[:n]
}

// list adds a list of words: "$@" keeps them apart, "$*" does not.
func (w *walker) list(b *splitter, list []field, quoted, apart bool) {
	if w.words+len(b.fields)+len(list) > maxExpansions {
		w.spend()
		list = []field{{text: string(anything), many: true}}
	}
	for i, f := range list {
		if i > 0 {
			if quoted && !apart || b.assign {
				b.cur.WriteString(b.joint())
			} else {
				b.end()
			}
		}
		if quoted {
			b.quoted(f.text)
		} else {
			b.split(f.text)
		}
		b.many = b.many || f.many
	}
}

// operate applies what stands behind the name in ${…}.
func (w *walker) operate(sh *shell, p *syntax.ParamExp, text string, set bool) string {
	if p.Slice != nil || p.Repl != nil || p.Exp != nil {
		w.charge(len(text))
	}
	derived := string(outside) // of a text that is honest but not known
	if open(text) || known(text) {
		derived = string(anything)
	}
	switch {
	case p.Slice != nil:
		if out, ok := sliced(text, p.Slice); ok {
			return out
		}
		return derived
	case p.Repl != nil:
		from, with := w.value(sh, p.Repl.Orig), w.value(sh, p.Repl.With)
		if !known(text+from+with) || strings.ContainsAny(from, `*?[\`) || from == "" || from[0] == '#' || from[0] == '%' {
			return derived
		}
		n := 1
		if p.Repl.All {
			n = -1
		}
		return limited(strings.Replace(text, from, with, n))
	case p.Exp == nil:
		return text
	}
	operand := w.value(sh, p.Exp.Word)
	unset := text == "" || !set && text == string(outside)
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		out := text
		switch {
		case set && text != "" && !strings.ContainsRune(text, outside):
		case text == "":
			out = operand
		case !unset:
			out = text
		default:
			out = orElse(operand)
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			w.put(sh, p.Param.Value, out)
		}
		return out
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if text == string(outside) {
			return string(solid)
		}
		return text
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if set && text != "" && known(text) {
			return operand
		}
		if text == "" {
			return ""
		}
		return string(anything)
	case syntax.UpperAll:
		if known(text) && operand == "" {
			return strings.ToUpper(text)
		}
	case syntax.LowerAll:
		if known(text) && operand == "" {
			return strings.ToLower(text)
		}
	case syntax.OtherParamOps:
		if operand == "P" { // as a prompt
			w.expanded(sh, text)
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if known(text+operand) && !strings.ContainsAny(operand, `*?[\`) {
			return strings.TrimSuffix(text, operand)
		}
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if known(text+operand) && !strings.ContainsAny(operand, `*?[\`) {
			return strings.TrimPrefix(text, operand)
		}
	}
	return derived
}

// orElse is a variable of the environment, or this where it is not set.
func orElse(operand string) string {
	if r, n := utf8.DecodeRuneInString(operand); r == home || r == below {
		operand = "/" + operand[n:] // which is as honest
		if strings.Trim(operand, "/.") == "" {
			return string(solid)
		}
	}
	switch {
	case operand == "":
		return string(outside)
	case !known(operand), operand[0] == '-', strings.ContainsAny(operand, " \t\n*?["), strings.Trim(operand, "/.") == "":
		return string(anything)
	}
	return string(solid)
}

// sliced is ${x:offset:length} of numbers.
func sliced(text string, s *syntax.Slice) (string, bool) {
	number := func(x syntax.ArithmExpr, otherwise int) (int, bool) {
		if x == nil {
			return otherwise, true
		}
		n, err := strconv.Atoi(indexWord(x))
		return n, err == nil && n >= 0
	}
	runes := []rune(text)
	from, ok := number(s.Offset, 0)
	length, fine := number(s.Length, len(runes))
	if !ok || !fine || !known(text) {
		return "", false
	}
	from = min(from, len(runes))
	return string(runes[from:min(len(runes), from+length)]), true
}

// inside follows what runs while a parameter is expanded, wherever it stands in it.
func (w *walker) inside(sh *shell, p *syntax.ParamExp) {
	if p.Index != nil {
		w.arithmetic(sh, p.Index)
	}
	if p.Slice != nil {
		w.arithmetic(sh, p.Slice.Offset)
		w.arithmetic(sh, p.Slice.Length)
	}
}

// expanded follows what runs in a text that a shell expands as if it stood in double
// quotes.
func (w *walker) expanded(sh *shell, text string) {
	if strings.ContainsAny(text, "$`") {
		w.code(sh.child(), `: "`+strings.ReplaceAll(text, `"`, "")+`"`, unread)
	}
}

// prompts follows what runs in the prompts of a shell.
func (w *walker) prompts(sh *shell) {
	for _, name := range prompts {
		if v, ok := sh.vars[name]; ok && len(v.list) > 0 {
			w.expanded(sh, v.list[0])
		}
	}
}
