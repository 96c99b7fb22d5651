package guard

import (
	"slices"
	"strings"
	"sync"
)

// callers are functions of other languages that run a program, or shell code. In another
// language one may be something else: what it is given counts where it is a text.
var callers = strings.Fields(`system popen exec execSync execFile execFileSync spawn spawnSync shell_exec passthru proc_open pcntl_exec
subprocess.run subprocess.call check_output check_call Popen getoutput getstatusoutput execvp execvpe execlp execv execl execute Command capture2 capture3
spawnl spawnlp spawnv spawnvp spawnvpe posix_spawn posix_spawnp create_subprocess_shell create_subprocess_exec system2 shell-command call-process`)

// language is what is known of a language's ways to run other programs.
type language struct {
	// runs are functions that certainly run what they are given, separated by spaces: what is no
	// text there is code that is only known when it runs.
	runs string
	// within are such functions where the program names the module, which is there for nothing
	// else. Where it does and none of them is seen, what it runs is not known.
	module, within string
	// texts are functions of which only texts count that they are given.
	texts string
	// handles are functions with other arguments before the command.
	handles string
	// opens are functions whose argument is a command where a | stands at its beginning, or
	// its end.
	opens string
	// quotes begin texts that are commands, up to the quote or bracket that closes them.
	quotes string
	// evals are functions that run a text as a program.
	evals string
	// executes are what makes a command of the text before it.
	executes string
	// spaced: blanks stand between arguments.
	spaced bool
	// bare: a call may do without brackets, and what follows may be a name.
	bare bool
	// sigils begin what is put into texts: names where they are named, and what stands in
	// braces.
	sigils string
	named  bool
}

// python and javascript are languages that more than one program runs.
var (
	python = language{
		runs: `system popen subprocess.run subprocess.call check_output check_call Popen getoutput getstatusoutput execvp execvpe execlp execv
execl execve spawnl spawnlp spawnv spawnvp spawnvpe posix_spawn posix_spawnp create_subprocess_shell create_subprocess_exec pty.spawn`,
		module: "subprocess", within: "run call", evals: "exec eval",
	}
	javascript = language{
		runs: "execSync execFile execFileSync spawnSync Bun.spawn Deno.Command", module: "child_process", within: "exec spawn fork", quotes: "$`", sigils: "$",
		evals: "eval Function",
	}
)

// languages are what is known of the languages of interpreters.
var languages = sync.OnceValue(func() map[string]language {
	return map[string]language{
		"python": python, "node": javascript,
		"perl": {
			runs: "system exec readpipe", handles: "open2 open3", opens: "open", quotes: "qx `", bare: true, sigils: "$@", named: true,
			module: "IPC::", within: "run capture capturex start", evals: "eval",
		},
		"ruby": {
			runs: "system spawn exec IO.popen capture2 capture2e capture3 popen2 popen2e popen3", opens: "open IO.read IO.readlines IO.foreach IO.binread",
			quotes: "%x `", bare: true, sigils: "#", evals: "eval instance_eval class_eval", texts: "sh",
		},
		"php":       {runs: "system exec shell_exec passthru popen proc_open pcntl_exec", quotes: "`", sigils: "$", named: true, evals: "eval"},
		"lua":       {runs: "os.execute io.popen vim.fn.system vim.fn.jobstart vim.system", evals: "load loadstring"},
		"r":         {runs: "system system2", texts: "shell pipe"},
		"elixir":    {runs: "System.cmd System.shell os:cmd os.cmd"},
		"erlang":    {runs: "os:cmd", texts: "open_port"},
		"octave":    {runs: "system shell_cmd", texts: "unix dos popen popen2"},
		"go":        {texts: "exec.Command exec.CommandContext syscall.Exec os.StartProcess"},
		"rust":      {texts: "Command::new"},
		"java":      {texts: "ProcessBuilder commandLine executable", executes: ".execute( .! .!! .lazyLines"},
		"ocaml":     {texts: "Sys.command Unix.system Unix.open_process_in"},
		"haskell":   {texts: "callCommand callProcess readProcess spawnCommand rawSystem"},
		"nim":       {texts: "execCmd execCmdEx execShellCmd staticExec gorge"},
		"crystal":   {texts: "Process.run", quotes: "`"},
		"vim":       {runs: "system systemlist job_start jobstart term_start termopen"},
		"osascript": {runs: "do shell script"},
		"julia":     {quotes: "`"},
		"awk":       {runs: "system"},
		"c":         {texts: "system popen execl execlp execvp"},
		"bazel":     {texts: "genrule"},
		"lisp": {
			runs: `shell-command shell-command-to-string async-shell-command call-process call-process-shell-command start-process make-process
start-process-shell-command run-program`,
			texts: "system* compile shell sh process ext:shell", spaced: true,
		},
	}
})

// speakers are the programs that run a language which is not called as they are, separated by spaces.
var speakers = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for language, programs := range map[string]string{
		"python": "pypy ipython sage gdb lldb jupyter django-admin flask pytest scons bpython git-filter-repo",
		"node":   "nodejs bun deno mongosh mongo electron ts-node tsx", "ruby": "irb rake rails gem bundle", "perl": "latexmk", "php": "artisan drush wp",
		"lua": "luajit texlua lualatex luatex redis-cli", "r": "rscript lr littler", "elixir": "iex mix", "erlang": "erl escript", "octave": "octave-cli matlab scilab gnuplot", "c": "gcc g++ cc c++ clang clang++ tcc",
		"java": "jshell groovy kotlin kotlinc scala scala-cli sbt gradle gradlew jbang", "lisp": "emacs emacsclient guile racket sbcl clisp ecl clojure clj bb lein",
		"haskell": "ghc ghci runghc runhaskell", "ocaml": "utop", "awk": "bpftrace", "go": "yaegi gore", "nim": "", "crystal": "", "julia": "", "rust": "rust-script",
	} {
		all[language] = language
		for program := range strings.FieldsSeq(programs) {
			all[program] = language
		}
	}
	for _, program := range interpreters {
		if _, ok := all[program]; !ok {
			all[program] = program
		}
	}
	all["osascript"] = "osascript"
	return all
})

// speaks is the language of a program that runs one, "" for any other.
func speaks(program string) string { return speakers()[program] }

// calls follows what a program gives to functions that run it.
func (w *walker) calls(sh *shell, l language, program string) {
	runs := strings.Fields(l.runs)
	about := l.module != "" && strings.Contains(program, l.module)
	if about {
		runs = append(runs, strings.Fields(l.within)...)
	}
	handles, opens := strings.Fields(l.handles), strings.Fields(l.opens)
	given := strings.Fields(l.texts)
	names := slices.Concat(callers, runs, handles, opens, given)
	slices.Sort(names)
	seen := false
	for _, function := range slices.Compact(names) {
		sure := slices.Contains(runs, function)
		behind, opening := slices.Contains(handles, function), slices.Contains(opens, function)
		calls := calledIn(program, function)
		if len(calls) > maxTurns {
			w.give(function, "it is called more often than is followed")
			continue
		}
		for _, after := range calls {
			if w.charge(scanWork) {
				return
			}
			args := l.arguments(after)
			for (behind || slices.Contains(given, function)) && len(args) > 1 && !known(args[0].text) {
				args = args[1:]
			}
			if sure && strings.HasPrefix(after, " as ") {
				w.give(function, "under another name it runs what is not known")
			}
			switch {
			case len(args) == 0, !sure && !behind && !opening && args[0].text == string(anything):
			case opening:
				w.opened(sh, l, args)
			default:
				seen = true
				if function == "start-process" { // behind two names of its own
					args = args[min(2, len(args)):]
				}
				w.given(sh, args)
			}
		}
	}
	for _, function := range strings.Fields(l.evals) {
		for _, after := range calledIn(program, function) {
			if !strings.HasPrefix(strings.TrimLeft(after, " ("), "{") && slices.ContainsFunc(inputs, func(s string) bool { return strings.Contains(program, s) }) {
				w.give(function, "it runs a program that is only known when it runs")
			}
		}
	}
	seen = w.ticked(sh, l, program) || seen
	w.executed(sh, l, program)
	if about && !seen {
		w.give(l.module, "which programs it is used to run is not known")
	}
}

// inputs are where programs read what comes from elsewhere.
var inputs = strings.Fields("stdin STDIN <> $< ARGF gets io.read /dev/fd php://input readFileSync(0 urlopen http.get Net::HTTP LWP:: fetch( file_get_contents")

// ticked follows the texts of a program that are commands by their quotes, and reports
// whether there are some.
func (w *walker) ticked(sh *shell, l language, program string) (seen bool) {
	for _, mark := range strings.Fields(l.quotes) {
		parts := strings.SplitN(program, mark, maxTurns)
		if len(parts) == maxTurns {
			w.give(mark, "more commands stand in the program than are followed")
		}
		for i := 1; i < len(parts); i++ {
			text := parts[i]
			switch {
			case mark == "`" && i%2 == 0:
				continue // behind the closing one
			case mark != "`" && strings.HasSuffix(mark, "`"):
				text, _, _ = strings.Cut(text, "`")
			case mark != "`":
				var ok bool
				if text, ok = quotedText(text); !ok {
					continue
				}
			}
			seen = true
			w.code(sh.child(), l.filled(text), unread)
		}
	}
	return seen
}

// executed follows the texts of a program that are made commands by what stands behind them.
func (w *walker) executed(sh *shell, l language, program string) {
	for _, mark := range strings.Fields(l.executes) {
		for _, before := range strings.SplitN(program, mark, maxTurns) {
			last := len(before) - 1
			if last < 1 || before[last] != '"' && before[last] != '\'' {
				continue
			}
			if i := strings.LastIndexByte(before[:last], before[last]); i >= 0 {
				w.code(sh.child(), l.filled(before[i+1:last]), unread)
			}
		}
	}
}

// calledIn are the texts that stand behind a function where it is called, in a program.
func calledIn(program, function string) (all []string) {
	for at := 0; len(all) <= maxTurns; {
		i := strings.Index(program[at:], function)
		if i < 0 {
			break
		}
		before, after := program[:at+i], program[at+i+len(function):]
		at += i + len(function)
		if before != "" && isName(before[len(before)-1:]) || after != "" && isName(after[:1]) {
			continue // a part of a name
		}
		if before != "" && after != "" && strings.IndexByte("\"'", after[0]) >= 0 && strings.IndexByte("/"+after[:1], before[len(before)-1]) >= 0 {
			continue // a text, or the end of one
		}
		before = strings.TrimRight(before, " \t")
		if strings.Contains(function, "::") {
			before = strings.TrimSuffix(before, "::")
		}
		if !slices.ContainsFunc(others, func(end string) bool { return strings.HasSuffix(before, end) || strings.HasSuffix(program[:at], end) }) {
			all = append(all, after)
		}
	}
	return all
}

// others stand before what has the name of a function, and is none or another one.
var others = []string{"->", "::", "$", "%", "asyncio.run", "def", "function", "sub"}

// given follows what a function is given: one text is code for a shell, as is the first of
// several that is more than a word, and several are a program and its arguments.
func (w *walker) given(sh *shell, args []field) {
	if len(args) == 0 {
		return
	}
	if len(args) > 1 {
		w.run(sh.child(), args, unread)
	}
	if len(args) == 1 || strings.ContainsAny(args[0].text, " \t\n") {
		w.code(sh.child(), args[0].text, unread)
	}
}

// opened follows a function that opens a file, or a program by a name with a |.
func (w *walker) opened(sh *shell, l language, args []field) {
	perl := l.handles != ""
	if perl { // whose handle comes first
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	name := strings.TrimSpace(args[0].text)
	after, begins := strings.CutPrefix(name, "|")
	before, ends := strings.CutSuffix(name, "|")
	switch {
	case perl && (strings.HasPrefix(name, "-|") || strings.HasPrefix(name, "|-")):
		if len(args) > 1 {
			w.given(sh, args[1:])
		}
	case begins && after != "":
		w.code(sh.child(), after, unread)
	case perl && ends && before != "":
		w.code(sh.child(), before, unread)
	case perl && len(args) == 1 && (name == string(anything) || name == string(outside)):
		w.give("open", "whether it opens a file or a program is only known when it runs")
	}
}

// filled is a text of a program in which what is put into it when it runs is not known.
func (l language) filled(text string) string {
	if l.sigils == "" {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		next := text[min(i+1, len(text)-1)]
		braces := next == '{'
		if strings.IndexByte(l.sigils, text[i]) < 0 || !braces && (!l.named || !isName(string(rune(next)))) {
			out.WriteByte(text[i])
			continue
		}
		out.WriteRune(outside)
		for i++; i < len(text)-1; i++ {
			if braces && text[i] == '}' || !braces && !isName(text[i+1:i+2]) {
				break
			}
		}
	}
	return out.String()
}

// inBraces is a text of a program in which what stands in braces is put in when it runs.
func inBraces(text string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		_, text, _ = strings.Cut(rest, "}")
		out.WriteRune(outside)
	}
}
