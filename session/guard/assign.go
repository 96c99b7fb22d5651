package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign sets variables.
func (w *walker) assign(sh *shell, list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil {
			continue
		}
		name := a.Name.Value
		if a.Index != nil {
			w.arithmetic(sh, a.Index)
			text := w.value(sh, a.Value)
			sh.vars[name] = variable{list: []string{string(anything)}, array: true}
			if name == "BASH_ALIASES" {
				w.code(sh.fork(), text, unread)
			}
			continue
		}
		if a.Array != nil {
			w.array(sh, a)
			continue
		}
		if a.Naked {
			continue
		}
		text := w.value(sh, a.Value)
		if strings.HasPrefix(text, "~") && a.Value != nil {
			text = string(home) + text[1:]
		}
		if a.Append {
			if _, ok := sh.vars[name]; ok || name == "PATH" || text == "" {
				text = sh.lookup(name) + text
			} else {
				text = string(outside) + text
			}
		}
		sh.set(name, text)
		if a.Value != nil {
			w.codeSetting(sh, name, text)
		}
	}
}

func (w *walker) array(sh *shell, a *syntax.Assign) {
	v := variable{array: true}
	if a.Append {
		v.list = slices.Clone(sh.vars[a.Name.Value].list)
	}
	for _, e := range a.Array.Elems {
		if e.Index != nil {
			w.arithmetic(sh, e.Index)
			w.value(sh, e.Value)
			v.list = []string{string(anything)}
			continue
		}
		for _, f := range w.fields(sh, []*syntax.Word{e.Value}) {
			v.list = append(v.list, f.text)
		}
	}
	if len(v.list) > maxBraces {
		v.list = []string{string(anything)}
	}
	sh.vars[a.Name.Value] = v
	for _, text := range v.list {
		w.codeSetting(sh, a.Name.Value, text)
	}
}

// declare follows declare, local, export, readonly and their like.
func (w *walker) declare(sh *shell, c *syntax.DeclClause) string {
	export := c.Variant.Value == "export"
	if !export && c.Variant.Value != "readonly" {
		sh.localise(c.Args)
	}
	words := []string{c.Variant.Value}
	number := false
	for _, a := range c.Args {
		if a.Name == nil {
			text := w.value(sh, a.Value)
			words = append(words, text)
			number = number || strings.HasPrefix(text, "-") && strings.Contains(text, "i")
			if strings.HasPrefix(text, "-") && strings.Contains(text, "x") {
				export = true
			}
			if name, value, ok := strings.Cut(text, "="); ok && syntax.ValidName(name) {
				w.put(sh, name, value)
			} else if !known(text) || strings.HasPrefix(text, "-") && strings.Contains(text, "n") {
				w.give(strings.Join(words, " "), "which variables it sets is not known")
			}
			continue
		}
		words = append(words, a.Name.Value)
		if number && a.Value != nil {
			w.subscript(sh, w.value(sh, a.Value))
		}
		if export {
			sh.exported[a.Name.Value] = true
		}
	}
	w.assign(sh, c.Args)
	w.note(sh, literal(words))
	return ""
}
