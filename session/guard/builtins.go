package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin follows what the shell does itself: what changes what it knows, and what it
// runs. It returns what that prints, and false where it is no such command.
func (w *walker) builtin(sh *shell, program string, args []field, stdin string) (string, bool) {
	switch program {
	case "cd", "pushd":
		w.changeDir(sh, args)
		return "", true
	case "popd":
		sh.dir = string(someDir)
		return "", true
	case "eval":
		w.evaluate(sh, strings.Join(texts(args), " "), stdin)
		return string(anything), true
	case "trap":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 1 {
			w.code(sh.fork(), args[0].text, unread)
		}
		return "", true
	case ".", "source":
		w.source(sh, args, stdin)
		return string(anything), true
	case "hash":
		if len(args) == 3 && args[0].text == "-p" {
			sh.aliases[args[2].text] = args[1].text
		}
		return "", true
	case "shopt":
		sh.echoes = sh.echoes && !slices.ContainsFunc(args, func(f field) bool { return !known(f.text) || f.text == "xpg_echo" })
		return "", true
	case "set":
		w.setOptions(sh, args)
		w.prompts(sh)
		return "", true
	case "shift":
		if len(sh.params) > 0 && !sh.params[0].many {
			sh.params = sh.params[1:]
		}
		return "", true
	case "unset":
		for _, a := range args {
			if syntax.ValidName(a.text) {
				sh.vars[a.text] = variable{}
			}
		}
		return "", true
	case "complete", "compgen":
		w.completion(sh, args)
		return string(anything), true
	case "read", "mapfile", "readarray", "getopts":
		w.readBuiltin(sh, program, args, stdin)
		return "", true
	case "alias":
		w.alias(sh, args)
		return "", true
	case "export", "declare", "local", "readonly", "typeset": // by way of a variable or command
		for _, a := range args {
			if name, value, ok := strings.Cut(a.text, "="); ok && syntax.ValidName(name) {
				w.put(sh, name, value)
				sh.exported[name] = true
			}
		}
		return "", true
	case "command", "type", "which":
		return w.commandBuiltin(sh, program, args, stdin), true
	case "printf":
		if len(args) > 2 && args[0].text == "-v" {
			text, _, _ := strings.Cut(output(sh, program, args[2:], stdin), "\x00")
			w.put(sh, args[1].text, text)
			return "", true
		}
	}
	return "", false
}

// completion follows what complete and compgen run and expand.
func (w *walker) completion(sh *shell, args []field) {
	for i := 0; i+1 < len(args); i++ {
		switch args[i].text {
		case "-C":
			w.code(sh.fork(), args[i+1].text, unread)
		case "-W":
			w.expanded(sh, args[i+1].text)
		}
	}
}

// readBuiltin follows read and its like: what they read into is forgotten, or known.
func (w *walker) readBuiltin(sh *shell, program string, args []field, stdin string) {
	for i := 0; i+1 < len(args); i++ {
		if args[i].text == "-C" && program != "read" {
			w.code(sh.fork(), args[i+1].text, unread)
		}
	}
	sh.forget(texts(args)...)
	if program == "read" {
		sh.readInto(args, stdin)
		for _, a := range args {
			if syntax.ValidName(a.text) {
				w.codeSetting(sh, a.text, sh.lookup(a.text))
			}
		}
	} else if program != "getopts" {
		sh.forget("MAPFILE")
	}
}

// commandBuiltin runs what command runs, or returns what it and its like print.
func (w *walker) commandBuiltin(sh *shell, program string, args []field, stdin string) string {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if program == "command" && strings.ContainsAny(args[0].text, "vV") {
			program = "which"
		}
		args = args[1:]
	}
	if program == "command" {
		inner := sh.fork()
		clear(inner.funcs)
		return w.run(inner, args, stdin)
	}
	return strings.Join(texts(args), "\n") + "\n"
}

// changeDir follows cd.
func (w *walker) changeDir(sh *shell, args []field) {
	for len(args) > 0 && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	target := sh.lookup("HOME")
	if len(args) > 0 {
		target = args[0].text
	}
	switch {
	case target == "-":
		sh.dir = string(someDir)
		return
	case target == string(outside), target == string(solid):
		// A variable of the environment: somewhere, but not the root.
		sh.dir = string(someDir)
		return
	case target == "" && len(args) > 0:
		return
	}
	if _, ok := sh.vars["CDPATH"]; ok && !absolute(target) && !strings.HasPrefix(target, ".") {
		sh.dir = string(anything)
		return
	}
	sh.dir = limited(resolve(sh.dir, target))
}

// setOptions follows set.
func (w *walker) setOptions(sh *shell, args []field) {
	for i, a := range args {
		switch {
		case a.text == "--":
			sh.params = slices.Clone(args[i+1:])
			return
		case a.text == "-o" || a.text == "+o":
		case a.text == "allexport", strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "a") && !strings.HasPrefix(a.text, "--"):
			sh.allOut = true
		case !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+"):
			if i > 0 && args[i-1].text == "-o" || i > 0 && args[i-1].text == "+o" {
				continue
			}
			sh.params = slices.Clone(args[i:])
			return
		}
	}
}

// readInto sets what read takes from a text that is known. With flags that read another
// way it may be anything.
func (s *shell) readInto(args []field, stdin string) {
	var names []string
	for i := 0; i < len(args); i++ {
		flags, ok := strings.CutPrefix(args[i].text, "-")
		switch {
		case !ok && syntax.ValidName(args[i].text):
			names = append(names, args[i].text)
		case ok && strings.Trim(flags, "rs") != "":
			if strings.HasSuffix(flags, "p") && strings.Trim(flags, "rsp") == "" {
				i++ // the prompt
				continue
			}
			stdin = string(anything)
		}
	}
	line, _, _ := strings.Cut(stdin, "\n")
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	if open(stdin) || strings.Contains(stdin, "\x00") || !known(s.lookup("IFS")) || s.lookup("IFS") != " \t\n" {
		s.forget(names...)
		return
	}
	words := strings.Fields(line)
	for i, name := range names {
		switch {
		case i >= len(words):
			s.set(name, "")
		case i == len(names)-1:
			s.set(name, strings.Join(words[i:], " "))
		default:
			s.set(name, words[i])
		}
	}
	if strings.Count(stdin, "\n") > 1 || !known(stdin) {
		// A loop may read on.
		for _, name := range names {
			if known(stdin) {
				s.set(name, string(anything))
			} else {
				s.set(name, stdin)
			}
		}
	}
}

func (w *walker) alias(sh *shell, args []field) {
	for _, a := range args {
		name, value, ok := strings.Cut(a.text, "=")
		if !ok {
			continue
		}
		if !known(name) {
			w.give("alias "+a.text, "what it names is only known when it runs")
			continue
		}
		sh.aliases[name] = value
	}
}
