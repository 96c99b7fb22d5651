package guard

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker follows shell code and collects the simple commands that it may run. It
// runs nothing: what would be known only then it marks as not known. Every branch
// is followed, also those that are never taken.
type walker struct {
	*effort
	found []command
	base  string // where the call's relative paths begin
	// declared are all functions, and called those that were called.
	declared []declared
	called   map[*syntax.Stmt]bool
	// followed is the code of files that programs load, by what loads it and their names, and
	// running how often what a file describes is being followed: it may start the same
	// program again.
	followed map[string]string
	running  map[string]int
}

// declared is a function and the shell that declared it.
type declared struct {
	sh   *shell
	body *syntax.Stmt
}

func newWalker(e *effort) *walker {
	return &walker{effort: e, called: map[*syntax.Stmt]bool{}, followed: map[string]string{}, running: map[string]int{}}
}

// once reports whether code in a file is followed for the first time.
func (w *walker) once(by, name, text string) bool {
	key := by + "\x00" + name
	if seen, ok := w.followed[key]; ok && seen == text {
		return false
	}
	w.followed[key] = text
	return true
}

// maxAgain is how often what a file describes is followed within itself.
const maxAgain = 2

// describedIn follows what a file describes, unless that is being followed already.
func (w *walker) describedIn(name string, follow func()) {
	if w.running[name] >= maxAgain || w.spent {
		return
	}
	w.running[name]++
	follow()
	w.running[name]--
}

// commands are what was found, each once.
func (w *walker) commands() []command {
	seen := map[string]bool{}
	return slices.DeleteFunc(w.found, func(c command) bool {
		var b strings.Builder
		b.WriteString(c.why + "\x00" + c.dir)
		if c.searched {
			b.WriteString("\x00\x00")
		}
		for _, list := range [][]string{c.touched.reads, c.touched.writes} {
			b.WriteString("\x00\x00\x00" + strings.Join(list, "\x00"))
		}
		for _, f := range c.fields {
			b.WriteString("\x00" + f.text)
			if f.many {
				b.WriteString("\x00\x00")
			}
		}
		key := b.String()
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// give notes code that is not known.
func (w *walker) give(what, why string) {
	w.found = append(w.found, opaque(what, why))
}

// uncalled follows, at last, the functions that nothing called: other programs may.
func (w *walker) uncalled() {
	for i := 0; i < len(w.declared); i++ { // they may declare more
		d := w.declared[i]
		if !w.called[d.body] {
			d.sh.params = []field{{text: string(outside), many: true}}
			w.call(d.sh, d.body, unread)
		}
	}
}

// code follows shell code and reports whether it could be read as such.
func (w *walker) code(sh *shell, text, stdin string) bool {
	if w.spent {
		return true // a person is asked anyway
	}
	w.charge(codeWork + len(text))
	switch {
	case len(text) > maxLine:
		w.give("a line of "+sizeOf(len(text)), "it is longer than what is looked at")
		return false
	case nesting(text) > maxNesting:
		w.give("the line", "its brackets stand too deep in one another")
		return false
	}
	if open(text) {
		w.give(cut(text, maxShown), "it is code that is only known when it runs")
	}
	text = strings.ReplaceAll(text, "\x00", "")
	for _, r := range w.otherReadings(sh, text) {
		_ = w.reading(sh.fork(), r, stdin) // where it ends, that shell ends as well
	}
	if err := w.reading(sh, reading{text, syntax.LangBash}, stdin); err != nil {
		w.give(cut(text, maxShown), "it cannot be parsed as a shell line")
		last := &w.found[len(w.found)-1]
		last.unparsed, last.top, last.code, last.dir = true, sh.depth == 0, text, sh.dir
		return false
	}
	return true
}

func sizeOf(n int) string {
	return strconv.Itoa(n>>10) + " KiB"
}

// nesting is how deep brackets and quotes may stand in one another, at most.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[', '`':
			depth++
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

// stmts follows statements one after another and returns what they print.
func (w *walker) stmts(sh *shell, list []*syntax.Stmt, stdin string) string {
	var out strings.Builder
	for _, s := range list {
		text := w.stmt(sh, s, stdin)
		if out.Len()+len(text) > maxText {
			out.Reset()
			text = string(anything)
		}
		out.WriteString(text)
	}
	return limited(out.String())
}

// substitution follows the statements of $(…) and <(…).
func (w *walker) substitution(sh *shell, list []*syntax.Stmt) string {
	return w.stmts(sh.fork(), list, unread)
}

// stmt follows one statement.
func (w *walker) stmt(sh *shell, s *syntax.Stmt, stdin string) string {
	if s == nil || s.Cmd == nil && len(s.Redirs) == 0 {
		return ""
	}
	if w.over(sh) {
		return string(anything)
	}
	sh.depth++
	defer func() { sh.depth-- }()
	stdin, into, undo := w.redirects(sh, s.Redirs, stdin)
	defer undo()
	if s.Cmd == nil {
		w.alone(sh)
		// $(<file) is what is in the file.
		if stdin == string(outside) {
			return string(anything)
		}
		return stdin
	}
	var out string
	if s.Background {
		out = w.cmd(sh.fork(), s.Cmd, stdin)
	} else {
		out = w.cmd(sh, s.Cmd, stdin)
	}
	text := out
	if fetches(s.Cmd) {
		text = fetched
	}
	for _, name := range into {
		w.wrote(sh, name, text)
	}
	if len(into) > 0 {
		return ""
	}
	return out
}

// heredoc is the text of a here-document, whose substitutions run unless its
// delimiter is quoted.
func (w *walker) heredoc(sh *shell, r *syntax.Redirect) string {
	for _, part := range r.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		if ok && !strings.Contains(lit.Value, `\`) {
			continue
		}
		var out strings.Builder
		for _, part := range r.Hdoc.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				out.WriteString(lit.Value)
			}
		}
		return out.String()
	}
	b := &splitter{assign: true, ifs: separators(sh)}
	w.parts(sh, b, r.Hdoc.Parts, true)
	return limited(b.cur.String())
}

// read is what a command reads from a file.
func (w *walker) read(sh *shell, r *syntax.Redirect, target string) string {
	if fields := w.fields(sh, []*syntax.Word{r.Word}); len(fields) == 1 && fields[0].output != nil {
		return *fields[0].output
	}
	return sh.content(target)
}

// cmd follows one command of any form and returns what it prints.
func (w *walker) cmd(sh *shell, c syntax.Command, stdin string) string {
	switch c := c.(type) {
	case *syntax.CallExpr:
		return w.simple(sh, c, stdin)
	case *syntax.BinaryCmd:
		return w.binary(sh, c, stdin)
	case *syntax.Block:
		return w.stmts(sh, c.Stmts, stdin)
	case *syntax.Subshell:
		return w.stmts(sh.fork(), c.Stmts, stdin)
	case *syntax.IfClause:
		return w.branches(sh, c, stdin)
	case *syntax.WhileClause:
		return w.loop(sh, append(slices.Clone(c.Cond), c.Do...), stdin)
	case *syntax.ForClause:
		return w.forLoop(sh, c, stdin)
	case *syntax.CaseClause:
		w.value(sh, c.Word)
		var ends []*shell
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.value(sh, p)
			}
			end := sh.fork()
			w.stmts(end, item.Stmts, stdin)
			ends = append(ends, end)
		}
		sh.merge(ends...)
		return string(anything)
	case *syntax.FuncDecl:
		w.declared = append(w.declared, declared{sh.fork(), c.Body})
		for _, name := range append(slices.Clone(c.Names), c.Name) {
			if name != nil {
				sh.funcs[name.Value] = c.Body
			}
		}
		return ""
	case *syntax.DeclClause:
		return w.declare(sh, c)
	case *syntax.TimeClause:
		if call := timed(c); len(call) > 0 && strings.HasPrefix(call[0].Lit(), "-") {
			// A flag of the program of this name, which other shells run.
			w.run(sh.fork(), slices.Concat(literal([]string{"time"}), w.fields(sh.fork(), call)), stdin)
		}
		return w.stmt(sh, c.Stmt, stdin)
	case *syntax.CoprocClause:
		stmt := *c.Stmt
		if stmt.Cmd == nil && c.Name != nil {
			stmt.Cmd = &syntax.CallExpr{Args: []*syntax.Word{c.Name}} // before redirections the parser takes it for a name
		}
		return w.stmt(sh.fork(), &stmt, unread)
	case *syntax.ArithmCmd:
		w.arithmetic(sh, c.X)
		return ""
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithmetic(sh, x)
		}
		return ""
	case *syntax.TestClause:
		w.test(sh, c)
		return ""
	}
	w.give("the line", "it holds what is not understood")
	return string(anything)
}

// timed are the words of the command behind the keyword time, where that is a simple one.
func timed(c *syntax.TimeClause) []*syntax.Word {
	if c.Stmt == nil {
		return nil
	}
	call, ok := c.Stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	return call.Args
}

// test follows the words of [[ … ]].
func (w *walker) test(sh *shell, c *syntax.TestClause) {
	syntax.Walk(c, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.UnaryTest:
			if word, ok := n.X.(*syntax.Word); ok && n.Op == syntax.TsVarSet {
				w.subscript(sh, w.value(sh, word))
				return false
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr: // numbers
				for _, x := range []syntax.TestExpr{n.X, n.Y} {
					if word, ok := x.(*syntax.Word); ok {
						w.subscript(sh, w.value(sh, word))
					}
				}
				return false
			}
		case *syntax.Word:
			w.value(sh, n)
			return false
		}
		return true
	})
}

// binary follows lists and pipes.
func (w *walker) binary(sh *shell, c *syntax.BinaryCmd, stdin string) string {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		return w.stmt(sh.fork(), c.Y, printed(w.stmt(sh.fork(), c.X, stdin)))
	}
	// What follows && runs where all before it did: it sees what they set. What
	// follows the whole list sees what is the same however far that came.
	list := []*syntax.Stmt{c.Y}
	first := c.X
	for c.Op == syntax.AndStmt {
		inner, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || inner.Op != syntax.AndStmt || first.Negated || first.Background || len(first.Redirs) > 0 {
			break
		}
		list, first = append(list, inner.Y), inner.X
	}
	out := w.stmt(sh, first, stdin)
	state := sh
	var ends []*shell
	for _, s := range slices.Backward(list) {
		state = state.fork()
		out += w.stmt(state, s, stdin)
		ends = append(ends, state)
	}
	sh.merge(ends...)
	return limited(out)
}

// prompts are variables whose values shells expand.
var prompts = []string{"PS0", "PS1", "PS2", "PS4"}

// simple follows a simple command.
func (w *walker) simple(sh *shell, c *syntax.CallExpr, stdin string) string {
	if len(c.Args) == 0 {
		w.assign(sh, c.Assigns)
		return ""
	}
	fields := w.fields(sh, c.Args)
	if len(c.Assigns) == 0 {
		return w.run(sh, fields, stdin)
	}
	// They hold for the command only, and reach every program that it starts.
	inner := sh.fork()
	w.assign(inner, c.Assigns)
	if len(fields) == 0 {
		w.assign(sh, c.Assigns)
		return ""
	}
	for _, a := range c.Assigns {
		if a.Name != nil {
			inner.exported[a.Name.Value] = true
		}
	}
	out := w.run(inner, fields, stdin)
	for _, a := range c.Assigns {
		if a.Name == nil {
			continue
		}
		if v, ok := sh.vars[a.Name.Value]; ok {
			inner.vars[a.Name.Value] = v
		} else {
			delete(inner.vars, a.Name.Value)
		}
	}
	exported := maps.Clone(sh.exported)
	depth, locals := sh.depth, sh.locals
	*sh = *inner
	sh.exported, sh.depth, sh.locals = exported, depth, locals
	return out
}

// note collects a command.
func (w *walker) note(sh *shell, fields []field) {
	_, set := sh.vars["PATH"]
	searched := set && !strings.HasPrefix(sh.lookup("PATH"), string(outside)) // more directories behind it hide nothing
	w.bytes += len(sh.dir)
	for _, f := range fields {
		w.bytes += len(f.text)
	}
	for _, name := range slices.Concat(sh.touched.reads, sh.touched.writes) {
		w.bytes += len(name)
	}
	w.noted += len(fields) + len(sh.touched.reads) + len(sh.touched.writes)
	if w.charge(0) {
		fields = fields[:min(len(fields), maxBraces)] // the rest is not known, as the line
	}
	w.found = append(w.found, command{fields: slices.Clone(fields), dir: sh.dir, base: w.base, searched: searched, touched: sh.touched, links: sh.links, effort: w.effort})
}

// call follows the body of a function. Its local variables end with it.
func (w *walker) call(sh *shell, body *syntax.Stmt, stdin string) string {
	w.called[body] = true
	if sh.depth > maxDepth {
		w.give("the line", "its functions call one another too deep")
		return string(anything)
	}
	outer := sh.locals
	sh.locals = map[string]*variable{}
	out := w.stmt(sh, body, stdin)
	for name, v := range sh.locals {
		if v != nil {
			sh.vars[name] = *v
		} else {
			delete(sh.vars, name)
		}
	}
	sh.locals = outer
	return out
}
