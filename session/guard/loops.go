package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// branches follows if, elif and else.
func (w *walker) branches(sh *shell, c *syntax.IfClause, stdin string) string {
	out := w.stmts(sh, c.Cond, stdin)
	then := sh.fork()
	a := w.stmts(then, c.Then, stdin)
	b := ""
	if c.Else != nil {
		if len(c.Else.Cond) == 0 {
			b = w.stmts(sh, c.Else.Then, stdin)
		} else {
			b = w.branches(sh, c.Else, stdin)
		}
	}
	sh.merge(then)
	switch {
	case a == b:
		return limited(out + a)
	case a == "", b == "":
		return limited(out + a + b)
	}
	return string(anything)
}

// loop follows code that runs any number of times: once, and where that changes
// something that the code may see, once more with what is then not known.
func (w *walker) loop(sh *shell, body []*syntax.Stmt, stdin string) string {
	before := sh.fork()
	// What it sets may be set when it begins again.
	for _, s := range body {
		syntax.Walk(s, func(n syntax.Node) bool {
			if a, ok := n.(*syntax.Assign); ok && a.Name != nil {
				sh.forget(a.Name.Value)
			}
			return true
		})
	}
	w.stmts(sh, body, stdin)
	w.again(sh, before, func() { w.stmts(sh, body, stdin) })
	return string(anything)
}

// again follows code that ran once and may run again.
func (w *walker) again(sh, before *shell, body func()) {
	changed := !sh.same(before)
	sh.merge(before)
	if changed {
		body()
		sh.merge(before)
	}
}

// forLoop follows a loop over words turn by turn, if they are few.
func (w *walker) forLoop(sh *shell, c *syntax.ForClause, stdin string) string {
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
			for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
				w.arithmetic(sh, x)
			}
		}
		return w.loop(sh, c.Do, stdin)
	}
	list := sh.params
	if words.InPos.IsValid() {
		list = w.fields(sh, words.Items)
	}
	if len(list) > maxTurns {
		list = []field{{text: string(anything)}}
	}
	if c.Select {
		list = append(slices.Clone(list), field{})
	}
	before := sh.fork()
	var out strings.Builder
	for _, f := range list {
		w.put(sh, words.Name.Value, f.text)
		var text string
		if f.many || len(list) == 1 && !known(f.text) {
			text = w.turn(sh, words.Name.Value, f.text, c.Do, stdin)
		} else {
			text = w.stmts(sh, c.Do, stdin)
		}
		if out.Len()+len(text) > maxText {
			out.Reset()
			text = string(anything)
		}
		out.WriteString(text)
	}
	if len(list) != 1 {
		sh.merge(before)
	}
	return limited(out.String())
}

// turn is one of any number of turns of a loop.
func (w *walker) turn(sh *shell, name, text string, body []*syntax.Stmt, stdin string) string {
	before := sh.fork()
	w.stmts(sh, body, stdin)
	w.again(sh, before, func() {
		sh.set(name, text)
		w.stmts(sh, body, stdin)
	})
	return string(anything)
}
