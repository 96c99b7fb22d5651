package guard

import (
	"slices"
	"strings"
	"sync"
)

// loader is what is known of programs that load code of a language from the files around them.
type loader struct {
	language string
	// files are the ends of the names of such files, and programs those that load them, separated
	// by spaces.
	files, programs string
}

// loaders are all of them. Which of its files a program loads is for it to say: what the line
// writes into one that it may load is followed when it is run.
var loaders = []loader{
	{"python", ".py SConstruct wscript", "python pypy ipython pytest py.test pip tox nox scons django-admin flask invoke inv fab celery gunicorn uvicorn mypy pylint poetry pdm hatch uv uvx pre-commit waf conan"},
	{"node", ".js .cjs .mjs .ts .cts .mts .jsx .tsx", "node nodejs npm npx pnpm yarn bun bunx deno jest vitest mocha ava tsx ts-node webpack vite rollup esbuild gulp grunt eslint prettier next nuxt tsc nodemon electron playwright cypress"},
	{"ruby", ".rb .rake .gemspec Rakefile Gemfile Vagrantfile Podfile Fastfile Guardfile", "ruby irb rake bundle rails rspec gem pod fastlane vagrant guard jekyll puma"},
	{"perl", ".pl .pm .t latexmkrc", "perl prove latexmk"},
	{"php", ".php", "php composer phpunit artisan"},
	{"lua", ".lua", "lua luajit nvim texlua lualatex busted luarocks"},
	{"go", ".go", "go"},
	{"rust", ".rs", "cargo"},
	{"java", ".java .gradle .kts .groovy .scala .sbt .jsh", "java jshell gradle gradlew mvn mvnw groovy kotlin kotlinc scala scala-cli sbt jbang"},
	{"cmake", "CMakeLists.txt .cmake CTestTestfile.cmake", "cmake ctest ccmake"},
	{"elixir", ".ex .exs", "mix elixir iex"},
	{"r", ".R .r .Rprofile", "r rscript"},
	{"lisp", ".el .emacs .scm .rkt .lisp .clj", "emacs emacsclient guile racket sbcl clisp ecl clojure clj bb lein"},
	{"vim", ".vimrc .exrc .nvimrc init.vim .gvimrc", "vim vi nvim ex view gvim vimdiff rvim"},
	{"c", ".c .cc .cpp .cxx .h .hpp .m", "gcc g++ cc c++ clang clang++ tcc make gmake cmake ninja meson"},
	{"bazel", "BUILD BUILD.bazel .bzl", "bazel bazelisk"},
}

// loadersOf are the loaders by program.
var loadersOf = sync.OnceValue(func() map[string][]loader {
	all := map[string][]loader{}
	for _, l := range loaders {
		for program := range strings.FieldsSeq(l.programs) {
			all[program] = append(all[program], l)
		}
	}
	return all
})

// lying follows the code that the line wrote into files which a program may load.
func (w *walker) lying(sh *shell, program string) {
	if len(sh.files) == 0 {
		return
	}
	for _, l := range loadersOf()[program] {
		ends := strings.Fields(l.files)
		for _, name := range w.fileNames(sh) {
			text := sh.files[name]
			if !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) }) || strings.HasPrefix(text, copied) {
				continue
			}
			if strings.HasPrefix(text, fetched) {
				w.give(program, "it may load code that is only known when it runs")
				return
			}
			if w.once(l.language, name, text) {
				if l.language == "vim" {
					w.editor(sh, text)
				}
				w.authored(sh, l.language, text)
			}
		}
	}
}

// authored follows code that a program may load: the texts that stand in it. What else it
// makes up is as what any other program does.
func (w *walker) authored(sh *shell, language, text string) {
	at, spent := len(w.found), w.spent
	switch language {
	case "cmake":
		w.cmake(sh, text)
	case "go":
		for _, after := range strings.SplitN(text, "//go:generate ", maxTurns)[1:] {
			code, _, _ := strings.Cut(after, "\n")
			w.code(sh.child(), code, unread)
		}
	}
	w.calls(sh, languages()[language], text)
	w.found = append(w.found[:at], slices.DeleteFunc(w.found[at:], func(c command) bool { return c.why != "" || !known(c.fields[0].text) })...)
	for i := at; i < len(w.found); i++ {
		w.found[i].fields = slices.DeleteFunc(slices.Clone(w.found[i].fields), func(f field) bool { return !known(f.text) })
	}
	if w.spent && !spent {
		w.exhausted() // which was noted among those
	}
}

// interpretedBy is the program that the first line of a file names, with its flags, and
// false for a shell.
func interpretedBy(text string) ([]field, bool) {
	line, ok := strings.CutPrefix(text, "#!")
	if !ok {
		return nil, false
	}
	line, _, _ = strings.Cut(line, "\n")
	fields := literal(strings.Fields(line))
	if len(fields) > 1 && called(fields[0].text) == "env" {
		fields = slices.DeleteFunc(fields[1:], func(f field) bool { return f.text == "-S" })
	}
	if len(fields) == 0 || isShell(called(fields[0].text)) {
		return nil, false
	}
	return fields, true
}

// writes are what programs of other languages call or say where they write files.
var writes = strings.Fields(`write dump "w 'w "a 'a >> copy move rename`)

// programFlags are the flags of programs behind which the name of a file of their commands
// stands, separated by spaces. One that is the first word is known of every language.
var programFlags = sync.OnceValue(func() map[string]string {
	all := map[string]string{
		"awk": "-f --file", "gawk": "-f --file", "mawk": "-f", "sed": "-f --file", "psql": "-f --file", "sqlite3": "-init", "gdb": "-x -ix --command", "lldb": "-s --source",
		"octave": "", "expect": "-f", "dc": "-f --file", "r": "-f --file", "emacs": "-l --load --script", "rake": "-f --rakefile", "bpftrace": "",
	}
	for _, program := range editors {
		all[program] = "-S -u -s"
	}
	return all
})

// programFile notes that a program is given one of its language, or commands, that somebody
// else makes up when the line runs.
func (w *walker) programFile(sh *shell, program string, args []field, stdin string) {
	files := named(args, strings.Fields(programFlags()[program])...)
	if _, compiles := sameCode()[program]; speaks(program) != "" && !compiles && program != "gcc" && len(args) > 0 {
		i := slices.IndexFunc(args, func(f field) bool { return !strings.HasPrefix(f.text, "-") || f.text == "-" })
		if i >= 0 && (i == 0 || args[i-1].text == "run" || !strings.HasPrefix(args[i-1].text, "--") && !takesNext(strings.Fields(inline[program]+" -m -r -I"), args[i-1].text)) {
			files = append(files, args[i])
		}
		if i >= 0 && args[i].text == "run" { // of bun and deno
			if behind := operandsBehind(nil, args[i+1:]); len(behind) > 0 {
				files = append(files, behind[0])
			}
		}
	}
	for _, f := range files {
		text, streamed := f.stream(stdin)
		if streamed && open(text) || strings.HasPrefix(sh.files[resolve(sh.dir, f.text)], fetched) {
			w.give(program, "it runs a program that is only known when it runs")
			return
		}
	}
}

// authors makes what a program in the line may have written into the files that it names code
// that is not known.
func (w *walker) authors(sh *shell, program string) {
	if !slices.ContainsFunc(writes, func(s string) bool { return strings.Contains(program, s) }) {
		return
	}
	for _, name := range quotedTexts(program) {
		file := strings.ContainsAny(name, "./") || strings.HasSuffix(name, "file") // and not a word as any other
		if file && len(name) <= maxShown && !strings.ContainsAny(name, " \t\n*()") && len(sh.files) < maxSteps {
			sh.files[resolve(sh.dir, name)] = string(anything)
		}
	}
}

// quotedTexts are the texts in quotes of a program, as many as are followed.
func quotedTexts(program string) (all []string) {
	s := callScanner{text: program}
	for s.at < len(program) && len(all) < maxNames {
		if strings.IndexByte("\"'`", program[s.at]) < 0 {
			s.at++
			continue
		}
		s.cur.Reset()
		if !s.quoted() {
			s.at++
			continue
		}
		all = append(all, s.cur.String())
	}
	return all
}

// cmake follows the commands that a program of cmake runs.
func (w *walker) cmake(sh *shell, text string) {
	text = strings.ReplaceAll(text, "${CMAKE_COMMAND}", "cmake")
	for _, after := range strings.SplitN(text, "COMMAND", maxTurns)[1:] {
		after, _, _ = strings.Cut(after[:min(len(after), maxCall)], ")")
		var fields []field
		for _, word := range quotedWords(after, " \t\n") {
			if word == strings.ToUpper(word) && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
				break // the next keyword
			}
			fields = append(fields, field{text: languages()["php"].filled(word)})
		}
		if len(fields) > 0 && known(fields[0].text) {
			w.run(sh.child(), fields, unread)
		}
	}
}
