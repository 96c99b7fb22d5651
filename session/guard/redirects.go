package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects follows the redirections of a statement. It returns what the statement reads,
// the files that get its output, and what ends that. Descriptors beside the first two are not followed:
// what is read from one may be anything, and so is what a file gets through one.
func (w *walker) redirects(sh *shell, list []*syntax.Redirect, stdin string) (in string, into []string, undo func()) {
	var from, all []string
	for _, r := range list {
		target := w.value(sh, r.Word)
		number := ""
		if r.N != nil {
			number = r.N.Value
		}
		text, reads := "", true
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if text = unread; r.Hdoc != nil { // it stands behind another command of its line
				text = w.heredoc(sh, r)
			}
		case syntax.WordHdoc:
			text = target + "\n"
		case syntax.RdrIn:
			from = append(from, target)
			text = w.read(sh, r, target)
		case syntax.RdrInOut: // it may be written through as well
			from, all = append(from, target), append(all, target)
			text = w.read(sh, r, target)
			if number == "1" {
				into = append(into, target)
			} else {
				w.wrote(sh, target, string(anything))
			}
		case syntax.DplIn:
			if target != "0" {
				text = unread
			}
		default:
			reads = false
		}
		if reads {
			if number == "" || number == "0" {
				stdin = text
			}
			continue
		}
		switch {
		case r.Op == syntax.DplOut && (target == "-" || strings.Trim(target, "0123456789-") == ""):
			// To another descriptor: what it prints may be read all the same.
		case number == "" || number == "1":
			into, all = append(into, target), append(all, target)
		default:
			all = append(all, target)
			w.wrote(sh, target, string(anything))
		}
	}
	return stdin, into, sh.touch(from, all)
}
