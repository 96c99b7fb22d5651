package guard

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// makefile follows the recipes of a makefile that the line gives to make, and the code in
// variables that it is given.
func (w *walker) makefile(sh *shell, args []field, stdin string) string {
	list := named(args, "-f", "--file", "--makefile")
	in := named(args, "-C", "--directory")
	for i, a := range args {
		name, value, cut := strings.Cut(a.text, "=")
		switch {
		case name == "--eval" || name == "-E":
			if !cut && i+1 < len(args) {
				value = args[i+1].text
			}
			w.recipes(sh, value)
		case name == "SHELL":
			w.shellSetting(sh, value)
		case cut && strings.HasSuffix(name, "!"):
			w.code(sh.child(), value, unread)
		case cut:
			w.makeShells(sh, value)
		}
	}
	if len(list) == 0 {
		list = literal([]string{"GNUmakefile", "makefile", "Makefile", "BSDmakefile"})
	}
	inner := sh
	if len(in) > 0 {
		inner = sh.fork()
		inner.dir = resolve(sh.dir, in[len(in)-1].text)
	}
	for _, f := range list {
		if text := w.file(inner, f, stdin); text != string(outside) {
			w.describedIn(resolve(inner.dir, f.text), func() { w.recipes(inner, text) })
		}
	}
	return string(anything)
}

// named are the values of a flag, behind it or joined to it.
func named(args []field, flags ...string) (values []field) {
	for i, a := range args {
		for _, flag := range flags {
			rest, ok := strings.CutPrefix(a.text, flag)
			long := strings.HasPrefix(flag, "--")
			switch {
			case !ok:
			case rest == "" && i+1 < len(args):
				values = append(values, args[i+1])
			case long && strings.HasPrefix(rest, "="):
				values = append(values, field{text: rest[1:], output: a.output})
			case !long && rest != "":
				values = append(values, field{text: strings.TrimPrefix(rest, "="), output: a.output})
			}
		}
	}
	return values
}

// makeShells follows what make runs where it expands a text.
func (w *walker) makeShells(sh *shell, text string) {
	for i, mark := range []string{"$(shell ", "${shell "} {
		for _, after := range strings.SplitN(text, mark, maxTurns)[1:] {
			code, _, _ := strings.Cut(after, ")}"[i:i+1])
			w.code(sh.child(), code, unread)
		}
	}
}

// makeVariables are those that make has itself.
var makeVariables = sync.OnceValue(func() map[string]string {
	return map[string]string{"CC": "cc", "CXX": "c++", "MAKE": "make", "RM": "rm -f", "AR": "ar", "AS": "as", "LD": "ld", "CPP": "cc -E"}
})

// recipes follows the shell code of a makefile.
func (w *walker) recipes(sh *shell, text string) {
	if open(text) {
		w.give("make", "it reads rules that are only known when it runs")
	}
	if strings.HasPrefix(text, copied) {
		return
	}
	variables := maps.Clone(makeVariables())
	begins := "\t"
	expand := func(text string) string {
		made := expandMake(text, variables)
		w.charge(len(text) + len(made))
		return made
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if w.charge(len(line)) {
			return
		}
		w.makeShells(sh, line)
		name, value, cut := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); cut && !strings.HasPrefix(line, begins) && isName(strings.TrimRight(strings.TrimPrefix(name, "."), ":?+! ")) {
			switch plain := strings.TrimRight(name, ":?+! "); {
			case strings.HasSuffix(name, "!"):
				w.code(sh.child(), expand(value), unread)
			case plain == ".RECIPEPREFIX":
				begins = strings.TrimSpace(value)
			case plain == "SHELL":
				w.shellSetting(sh, value)
			case len(variables) < maxVariables:
				value = limited(expand(strings.TrimSpace(value)))
				if before, ok := variables[plain]; ok && strings.HasSuffix(name, "+") {
					value = limited(before + " " + value)
				}
				variables[plain] = value
			}
			continue
		}
		if file, ok := strings.CutPrefix(line, "include "); ok && !w.over(sh) {
			sh.depth++ // it may include itself
			if text := w.file(sh, field{text: strings.TrimSpace(file)}, unread); text != string(outside) && sh.depth < maxDepth {
				w.recipes(sh, text)
			}
			sh.depth--
		}
		recipe, ok := strings.CutPrefix(line, begins)
		if !ok || begins == "" {
			_, recipe, ok = strings.Cut(line, ";")
		}
		if ok && known(recipe) {
			w.code(sh.child(), strings.TrimLeft(expand(recipe), "@-+ \t"), unread)
		}
	}
}

// expandMake is a text of a makefile with its variables put in. One that is not known is one
// of the environment.
func expandMake(text string, variables map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(text) && out.Len() <= maxText; i++ {
		if text[i] != '$' || i+1 >= len(text) {
			out.WriteByte(text[i])
			continue
		}
		i++
		name, length := text[i:i+1], 0
		switch at := strings.IndexByte("({", text[i]); {
		case text[i] == '$':
			out.WriteByte('$')
			continue
		case at >= 0:
			var ok bool
			if name, _, ok = strings.Cut(text[i+1:], ")}"[at:at+1]); !ok {
				out.WriteString(text[i-1:])
				return out.String()
			}
			length = len(name) + 1
		}
		value, ok := variables[name]
		if !ok {
			value = string(outside)
		}
		out.WriteString(value)
		i += length
	}
	return out.String()
}

// justfile follows the recipes that the line gives to just: the lines that are set in.
func (w *walker) justfile(sh *shell, args []field, stdin string) string {
	list := literal([]string{"justfile", "Justfile", ".justfile"})
	for i, a := range args {
		name, value, cut := strings.Cut(a.text, "=")
		switch {
		case name != "-f" && name != "--justfile":
		case cut:
			list = []field{{text: value, output: a.output}}
		case i+1 < len(args):
			list = args[i+1 : i+2]
		}
	}
	for _, f := range list {
		text := w.file(sh, f, stdin)
		if text == string(outside) {
			continue
		}
		if open(text) {
			w.give("just", "it reads recipes that are only known when it runs")
		}
		w.describedIn(resolve(sh.dir, f.text), func() { w.justRecipes(sh, text) })
	}
	return string(anything)
}

// justRecipes follows the lines that are set in, and what stands between backticks.
func (w *walker) justRecipes(sh *shell, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if recipe := strings.TrimLeft(line, " \t"); recipe != line {
			w.code(sh.child(), strings.TrimLeft(recipe, "@-"), unread)
		}
		for i, code := range strings.Split(line, "`") {
			if i%2 == 1 {
				w.code(sh.child(), code, unread)
			}
		}
	}
}

// recipeFile is what is known of files that hold commands.
type recipeFile struct{ programs, files, names string }

// recipeFiles are the ends of the names of files in which the program runs what stands behind
// some names, separated by spaces. Without such names it runs what stands behind every one.
var recipeFiles = []recipeFile{
	{"ninja samu cmake meson", "build.ninja", "command rspfile_content"},
	{"foreman honcho overmind hivemind heroku goreman", "Procfile Procfile.dev", ""},
	{"task go-task", "Taskfile.yml Taskfile.yaml taskfile.yml", "cmd cmds sh -"},
	{"docker docker-compose podman podman-compose nerdctl", "compose.yml compose.yaml docker-compose.yml docker-compose.yaml", "command entrypoint test"},
	{"pre-commit prek git", ".pre-commit-config.yaml", "entry"},
	{"lefthook git", "lefthook.yml .lefthook.yml", "run"},
	{"mise rtx", "mise.toml .mise.toml", "run"},
	{"ant mvn", "build.xml pom.xml", "executable"},
}

// recipeFilesOf are those files by program.
var recipeFilesOf = sync.OnceValue(func() map[string][]recipeFile {
	all := map[string][]recipeFile{}
	for _, r := range recipeFiles {
		for program := range strings.FieldsSeq(r.programs) {
			all[program] = append(all[program], r)
		}
	}
	return all
})

// recipesOf follows what the program runs that stands in files which the line wrote.
func (w *walker) recipesOf(sh *shell, program string, args []field, stdin string) {
	for _, r := range recipeFilesOf()[program] {
		ends := strings.Fields(r.files)
		texts := map[string]string{}
		for _, name := range w.fileNames(sh) {
			if slices.Contains(ends, base(name)) || slices.ContainsFunc(ends, func(end string) bool { return end[0] == '.' && strings.HasSuffix(name, end) }) {
				texts[name] = w.text(sh, name)
			}
		}
		for i, f := range named(args, "-f", "--file") {
			if f.output == nil && !known(f.text) {
				continue // somebody's, or the value of another flag
			}
			text := w.file(sh, f, stdin)
			if _, twice := texts[resolve(sh.dir, f.text)]; !twice && text != string(outside) && f.output == nil || f.output != nil {
				texts[f.text+strings.Repeat(" ", i)] = text
			}
		}
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			w.describedIn(name, func() { w.recipeLines(sh, program, strings.Fields(r.names), texts[name]) })
		}
	}
}

// recipeLines follows the values of lines such as name: value and name = value.
func (w *walker) recipeLines(sh *shell, program string, names []string, text string) {
	switch {
	case strings.HasPrefix(text, copied):
		return
	case open(text):
		w.give(program, "it reads commands that are only known when it runs")
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		item, listed := strings.CutPrefix(line, "- ")
		name, value, ok := strings.Cut(item, ":")
		if i := strings.IndexByte(item, '='); i >= 0 && (!ok || i < len(name)) {
			name, value, ok = item[:i], item[i+1:], true
		}
		if i := strings.LastIndexAny(strings.TrimSpace(name), " \t<"); i >= 0 && ok {
			name = strings.TrimSpace(name)[i+1:] // of an element, or of a task in a table
		}
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		switch {
		case ok && (len(names) == 0 || slices.Contains(names, name)):
			w.code(sh.child(), optionValue(strings.TrimRight(strings.TrimSpace(value), ",|>/")), unread)
		case listed && slices.Contains(names, "-"):
			w.code(sh.child(), optionValue(item), unread)
		}
	}
}
