package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// indexWord is an index that is one plain word, such as @ or 0.
func indexWord(x syntax.ArithmExpr) string {
	if word, ok := x.(*syntax.Word); ok {
		return word.Lit()
	}
	return ""
}

// arithmetic follows the substitutions of an expression. Variables that it may
// set are not known afterwards.
func (w *walker) arithmetic(sh *shell, x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.substitution(sh, n.Stmts)
			return false
		case *syntax.ProcSubst:
			w.substitution(sh, n.Stmts)
			return false
		case *syntax.Word:
			// A variable in an expression is one itself.
			text := w.value(sh, n)
			if v, ok := sh.vars[text]; ok && len(v.list) > 0 {
				text = v.list[0]
			}
			w.subscript(sh, text)
			return false
		case *syntax.BinaryArithm:
			if word, ok := n.X.(*syntax.Word); ok && strings.HasSuffix(n.Op.String(), "=") {
				if name := word.Lit(); syntax.ValidName(name) {
					sh.set(name, string(outside))
				}
			}
		case *syntax.UnaryArithm:
			if word, ok := n.X.(*syntax.Word); ok && syntax.ValidName(word.Lit()) && len(n.Op.String()) == 2 {
				sh.set(word.Lit(), string(outside))
			}
		}
		return true
	})
}

// subscripts follows what runs in the names of elements of lists: those that a shell is
// told in words are expanded once more.
func (w *walker) subscripts(sh *shell, program string, args []field) {
	for i, a := range args {
		switch program {
		case "test", "[", "printf", "wait":
			if i == 0 || args[i-1].text != "-v" && args[i-1].text != "-p" {
				continue
			}
		case "unset", "read", "let", "mapfile", "readarray", "declare", "typeset", "local", "export", "readonly":
		default:
			return
		}
		w.subscript(sh, a.text)
	}
}

// subscript follows what runs in an expression of numbers that is a text.
func (w *walker) subscript(sh *shell, text string) {
	if strings.Contains(text, "[") {
		w.expanded(sh, text)
	}
}
