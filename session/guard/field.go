package guard

import (
	"path"
	"strings"
)

// What is not known of a word stands in it as marks: code points that no text
// has. A line that holds them is taken to hold what they stand for.
const (
	// anything is text that may be anything at all, also flags.
	anything rune = '\uFDD0'
	// outside is text from outside of the line, such as a variable of the
	// environment or the names of files: it may be empty, and it is no flag.
	outside rune = '\uFDD1'
	// solid is outside that is not empty.
	solid rune = '\uFDD2'
	// anyChars and anyChar are what the pattern of a file name stands for.
	anyChars rune = '\uFDD3'
	anyChar  rune = '\uFDD4'
	// someDir is an absolute directory other than the root, and home, which is
	// one, the user's own.
	someDir rune = '\uFDD5'
	home    rune = '\uFDD6'
	// below is an absolute path of at least two names.
	below rune = '\uFDD7'
)

// marks are all of them.
const marks = string(anything) + string(outside) + string(solid) + string(anyChars) + string(anyChar) + string(someDir) + string(home) + string(below)

// unread is the standard input of a command that nothing is piped into: what
// will be written to it is not known.
const unread = string(anything)

// field is one argument of a command as far as it is known.
type field struct {
	text string
	// many says that it may be any number of arguments.
	many bool
	// output is what can be read from the file that it names, a process
	// substitution; nil for every other field.
	output *string
}

// stream is what a command reads from the file that a field names, where that is the
// output of a process substitution or the command's own standard input.
func (f field) stream(stdin string) (text string, ok bool) {
	switch {
	case f.output != nil:
		return *f.output, true
	case f.text == "-", f.text == "/dev/stdin", f.text == "/dev/fd/0", f.text == "/proc/self/fd/0":
		return stdin, true
	}
	return "", false
}

// known reports whether all of the text is known.
func known(s string) bool { return !strings.ContainsAny(s, marks) }

// open reports whether the text may be anything, flags included.
func open(s string) bool { return strings.ContainsRune(s, anything) }

func literal(words []string) []field {
	fields := make([]field, len(words))
	for i, w := range words {
		fields[i] = field{text: w}
	}
	return fields
}

func texts(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.text
	}
	return all
}

// limited is the text, or the mark of one that is too long to be followed.
func limited(s string) string {
	if len(s) > maxText {
		return string(anything)
	}
	return s
}

// shown spells marks for people.
var shown = strings.NewReplacer(
	string(anything), "…", string(outside), "…", string(solid), "…", string(anyChars), "*", string(anyChar), "?",
	string(someDir), "…", string(home), "~", string(below), "…", "\n", `\n`,
)

// dirText is a directory that is known, or the mark of a workspace whose place is
// not: it is not at the root.
func dirText(dir string) string {
	if dir == "" || !path.IsAbs(dir) {
		return string(below)
	}
	return path.Clean(dir)
}

// absolute reports whether a path with marks certainly begins at the root.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, string(someDir)) || strings.HasPrefix(p, string(home)) || strings.HasPrefix(p, string(below))
}

// resolve is the path seen from the directory, absolute and clean as far as its
// marks allow. What climbs out of what is not known may be anywhere.
func resolve(dir, p string) string {
	if p == "" {
		return dir
	}
	for _, process := range []string{"self", "thread-self", string(outside)} { // or its number
		if rest, ok := strings.CutPrefix(p, "/proc/"+process+"/cwd"); ok && (rest == "" || rest[0] == '/') {
			p = dir + rest // which is the directory by another name
			break
		}
	}
	// What begins with an unknown text may be absolute or not.
	if !absolute(p) && !strings.HasPrefix(p, string(anything)) && !strings.HasPrefix(p, string(outside)) && !strings.HasPrefix(p, string(solid)) {
		p = dir + "/" + p
	}
	rooted := strings.HasPrefix(p, "/")
	var names []string
	for name := range strings.SplitSeq(p, "/") {
		switch name {
		case "", ".":
		case "..":
			switch {
			case len(names) == 0 && !rooted:
				return string(anything)
			case len(names) == 0:
			case !known(names[len(names)-1]) && !globOnly(names[len(names)-1]):
				return string(anything)
			default:
				names = names[:len(names)-1]
			}
		default:
			names = append(names, name)
		}
	}
	if rooted && len(names) >= 3 && names[0] == "proc" && names[2] == "root" {
		names = names[3:] // the root by another name
	}
	clean := strings.Join(names, "/")
	if rooted {
		return "/" + clean
	}
	return clean
}

// globOnly reports whether the only marks are those of one file name.
func globOnly(s string) bool {
	return !strings.ContainsAny(s, string(anything)+string(outside)+string(solid)+string(someDir)+string(home)+string(below))
}
