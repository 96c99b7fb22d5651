package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// copied begins the content of a file that is a copy of a program, or a link to it.
const copied = "\x00program "

// fetched begins the content of a file that the line brings from elsewhere.
const fetched = string(anything) + "\x00"

// authored is the content of a file that somebody wrote, which cannot pass for a copy.
func authored(text string) string { return strings.TrimLeft(text, "\x00") }

// content is what is in a file as far as the line wrote it. A file that was there
// before is what it is, as a script is that is run by its name.
func (s *shell) content(name string) string {
	if text, ok := s.files[resolve(s.dir, name)]; ok {
		return text
	}
	switch {
	case name == "/dev/null":
		return ""
	case !known(name) || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/"):
		return string(anything)
	}
	return string(outside)
}

// wrote notes what was written into a file, for when it is run.
func (w *walker) wrote(sh *shell, name, text string) {
	if strings.HasPrefix(name, "/dev/") {
		return
	}
	name, text = resolve(sh.dir, name), authored(printed(text))
	if before, ok := sh.files[name]; ok {
		text = limited(before + text)
	}
	if len(sh.files) < maxSteps {
		sh.files[name] = text
	}
}

// printed is what a program printed, which is no file that was there before.
func printed(text string) string {
	if text == string(outside) {
		return text + "\n"
	}
	return text
}

// written are the contents of the programs that the line wrote or copied and that a
// command may run by this name: the one at its path, or, of a name alone, all that may be
// found by it.
func (w *walker) written(s *shell, name string) (all []string) {
	if strings.Contains(name, "/") {
		if text, ok := s.files[resolve(s.dir, name)]; ok {
			all = append(all, text)
		}
		return all
	}
	_, path := s.vars["PATH"] // which the line sets
	for _, file := range w.fileNames(s) {
		if base(file) != name {
			continue
		}
		original, isCopy := strings.CutPrefix(s.files[file], copied)
		if path || isCopy && original != name && base(original) != name {
			all = append(all, s.files[file])
		}
	}
	return all
}

// writer follows programs whose work is to write files, so that it is known what is run
// when one of those is. It returns what they print, and false where it is no such program.
func (w *walker) writer(sh *shell, program string, args []field, stdin string) (string, bool) {
	switch program {
	case "curl", "wget":
		w.download(sh, program, args)
		return string(anything), true
	case "cp", "mv", "ln", "install":
		sh.copy(args)
		if program == "ln" {
			sh.makeLinks(args)
		}
		return "", true
	case "tee":
		for _, a := range args {
			if !strings.HasPrefix(a.text, "-") {
				w.wrote(sh, a.text, stdin)
			}
		}
		return stdin, true
	case "dd":
		return w.dd(sh, args, stdin), true
	}
	return "", false
}

// download notes the files that curl and wget write, of which nobody knows what is in
// them: those that a flag names, and those with the names that stand in addresses.
func (w *walker) download(sh *shell, program string, args []field) {
	to, in, named := []string{"-o", "--output"}, []string{"--output-dir"}, true
	if program == "wget" {
		to, in, named = []string{"-O", "--output-document"}, []string{"-P", "--directory-prefix"}, false
	}
	dir := "."
	var files, addresses []string
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		name, value, cut := strings.Cut(arg, "=")
		next := ""
		if i+1 < len(args) {
			next = args[i+1].text
		}
		switch {
		case takesNext(to, arg):
			files, i = append(files, next), i+1
		case takesNext(in, arg):
			dir, i = next, i+1
		case cut && takesNext(to, name):
			files = append(files, value)
		case cut && takesNext(in, name):
			dir = value
		case strings.HasPrefix(arg, to[0]):
			files = append(files, arg[len(to[0]):])
		case len(in[0]) == 2 && strings.HasPrefix(arg, in[0]):
			dir = arg[len(in[0]):]
		case !strings.HasPrefix(arg, "-"):
			addresses = append(addresses, arg)
		case program == "curl" && (takesNext([]string{"-O", "--remote-name-all"}, arg) || strings.HasPrefix(arg, "-O")):
			named = false
		}
	}
	if !named && (program == "curl" || len(files) == 0) {
		for _, address := range addresses {
			plain := address
			if i := strings.IndexAny(plain, "?"+string(anyChar)); i >= 0 { // a query, which one of them leaves out
				plain = plain[:i]
			}
			files = append(files, base(address), base(plain))
		}
	}
	for _, name := range files {
		if name != "" && name != "-" {
			w.wrote(sh, resolve(resolve(sh.dir, dir), name), fetched)
		}
	}
}

// fetches reports whether a command is one that prints what it brings from elsewhere.
func fetches(c syntax.Command) bool {
	call, ok := c.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && slices.Contains([]string{"curl", "wget"}, base(call.Args[0].Lit()))
}

// dd follows dd.
func (w *walker) dd(sh *shell, args []field, stdin string) string {
	from, to := "", ""
	for _, a := range args {
		if name, ok := strings.CutPrefix(a.text, "if="); ok {
			from, stdin = name, sh.content(name)
		} else if name, ok := strings.CutPrefix(a.text, "of="); ok {
			to = name
		}
	}
	if stdin == string(outside) {
		stdin = string(anything) // now it is what is in it that counts
	}
	if to == "" {
		return stdin
	}
	if from != "" && stdin == string(anything) {
		sh.copy(literal([]string{from, to}))
		return ""
	}
	w.wrote(sh, to, stdin)
	return ""
}

// copy notes the programs that cp, mv, ln and install give another name.
func (s *shell) copy(args []field) {
	var operands []field
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			operands = append(operands, a)
		}
	}
	if len(operands) != 2 || len(s.files) >= maxSteps {
		return
	}
	from, to := operands[0].text, resolve(s.dir, operands[1].text)
	text, ok := s.files[resolve(s.dir, from)]
	if !ok {
		text = copied + from
		if !known(from) {
			text = string(anything)
		}
	}
	s.files[to] = text
	s.files[to+"/"+base(from)] = text // where it is a directory
}

// makeLinks notes the links that ln makes: a relative target is seen from where the link is.
func (s *shell) makeLinks(args []field) {
	symbolic := slices.ContainsFunc(args, func(f field) bool {
		return f.text == "--symbolic" || strings.HasPrefix(f.text, "-") && !strings.HasPrefix(f.text, "--") && strings.Contains(f.text, "s")
	})
	into := named(args, "-t", "--target-directory")
	var operands []string
	for i, a := range args {
		switch behind := i > 0 && takesNext([]string{"-t", "--target-directory"}, args[i-1].text); {
		case strings.HasPrefix(a.text, "-"):
		case behind:
			into = []field{a}
		default:
			operands = append(operands, a.text)
		}
	}
	where := "."
	switch {
	case len(into) > 0:
		where = into[0].text
	case len(operands) > 1:
		where, operands = operands[len(operands)-1], operands[:len(operands)-1]
	}
	place := resolve(s.dir, where)
	for _, target := range operands {
		inside := resolve(place, base(target)) // where it is a directory
		from := func(link string) string {
			if symbolic {
				return resolve(resolve(link, ".."), target)
			}
			return resolve(s.dir, target)
		}
		s.links.add(inside, from(inside))
		if len(operands) == 1 && len(into) == 0 && where != "." {
			s.links.add(place, from(place))
		}
	}
}
