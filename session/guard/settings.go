package guard

import (
	"slices"
	"strings"
	"sync"
)

// codeSettings are the variables whose values other programs run; * is any text. What ends
// as PAGER or EDITOR does is of that kind whatever program looks at it.
var codeSettings = strings.Fields(`*PAGER *EDITOR *ASKPASS *BROWSER *_RSH VISUAL FCEDIT PROMPT_COMMAND SHELL
GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND SVN_SSH SVN_MERGE HGMERGE KUBECTL_EXTERNAL_DIFF SSH_SK_HELPER SSH_PKCS11_HELPER
LESS LESSOPEN LESSCLOSE LESSEDIT FZF_DEFAULT_COMMAND FZF_CTRL_T_COMMAND FZF_ALT_C_COMMAND NNN_OPENER TEXEDIT
RESTIC_PASSWORD_COMMAND RCLONE_PASSWORD_COMMAND BORG_PASSCOMMAND ABDUCO_CMD RSYNC_CONNECT_PROG ANSIBLE_SSH_EXECUTABLE
RUSTC RUSTDOC *RUSTC_WRAPPER *RUSTC_WORKSPACE_WRAPPER CARGO_BUILD_RUSTC CARGO_BUILD_RUSTDOC CARGO_TARGET_*_RUNNER CARGO_TARGET_*_LINKER
GOCACHEPROG GOAUTH CMAKE_*_COMPILER_LAUNCHER CMAKE_*_LINKER_LAUNCHER CCACHE_PREFIX CCACHE_COMPILER
npm_config_script_shell npm_config_shell npm_config_git npm_config_editor npm_config_viewer npm_config_browser
CHROME_PATH PUPPETEER_EXECUTABLE_PATH`)

// builders are variables that name programs to build with. Lines often make them of what
// is in the environment already.
var builders = strings.Fields("CC CXX CPP FC LD AR AS NM RANLIB PKG_CONFIG YACC LEX")

// flagSettings are variables that hold flags of a program, for every program that starts it.
var flagSettings = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"TAR_OPTIONS": "tar", "MAKEFLAGS": "make", "MFLAGS": "make", "GNUMAKEFLAGS": "make", "LESS": "less", "MANOPT": "man", "GOFLAGS": "go",
		"FZF_DEFAULT_OPTS": "fzf", "JAVA_TOOL_OPTIONS": "java", "_JAVA_OPTIONS": "java", "JDK_JAVA_OPTIONS": "java", "JAVA_OPTS": "java", "MAVEN_OPTS": "java",
		"GRADLE_OPTS": "java", "SBT_OPTS": "java", "MAVEN_ARGS": "mvn", "RUBYOPT": "ruby", "PERL5OPT": "perl", "PERL5DB": "perl", "NODE_OPTIONS": "node",
		"npm_config_node_options": "node", "RUSTFLAGS": "rustc", "RUSTDOCFLAGS": "rustc", "CARGO_BUILD_RUSTFLAGS": "rustc",
		"CARGO_ENCODED_RUSTFLAGS": "rustc", "CFLAGS": "gcc", "CXXFLAGS": "gcc", "CPPFLAGS": "gcc", "LDFLAGS": "gcc", "PYTEST_ADDOPTS": "pytest",
		"ERL_FLAGS": "erl", "ERL_AFLAGS": "erl", "ERL_ZFLAGS": "erl", "ELIXIR_ERL_OPTIONS": "erl", "LUA_INIT": "lua", "VIMINIT": "vim", "GVIMINIT": "vim", "EXINIT": "vim",
	}
})

// fileSettings are variables that name files which programs load when they begin, and what
// is in those: a language, flags of a program behind --, or code of a shell where it is "".
var fileSettings = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"BASH_ENV": "", "ENV": "", "PYTHONSTARTUP": "python", "R_PROFILE": "r", "R_PROFILE_USER": "r", "R_ENVIRON_USER": "r", "OCTAVE_SITE_INITFILE": "octave",
		"MAKEFILES": "make", "RIPGREP_CONFIG_PATH": "--rg", "FZF_DEFAULT_OPTS_FILE": "--fzf", "LUA_INIT": "lua", "JULIA_STARTUP_FILE": "julia",
		"LD_PRELOAD": "library", "LD_AUDIT": "library", "DYLD_INSERT_LIBRARIES": "library",
	}
})

// fits reports whether a name is a pattern's, in which one * is any text.
func fits(pattern, name string) bool {
	before, after, some := strings.Cut(pattern, "*")
	if !some {
		return name == pattern
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// codeSetting follows a variable whose value is run by other programs.
func (w *walker) codeSetting(sh *shell, name, value string) {
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "npm_config_") {
		name = lower
	}
	if value == "" || w.over(sh) {
		return
	}
	if program, ok := flagSettings()[name]; ok {
		w.flagged(sh, program, value)
	}
	if kind, ok := fileSettings()[name]; ok {
		separated := func(r rune) bool { return kind != "" && strings.ContainsRune(" :;", r) }
		for file := range strings.FieldsFuncSeq(value, separated) {
			w.loaded(sh, name, kind, strings.TrimPrefix(file, "@"))
		}
	}
	switch {
	case inherited(value):
		return // what was in the environment already
	case name == "LESS": // flags of a pager that others start
		_, value, _ = strings.Cut(value, "+!")
	case name == "SHELL":
		w.shellSetting(sh, value)
		return
	case slices.ContainsFunc(codeSettings, func(pattern string) bool { return fits(pattern, name) }):
	case slices.Contains(builders, name) && known(value):
	default:
		return
	}
	if strings.HasPrefix(name, "LESS") {
		value = strings.TrimLeft(value, "|-") // marks that say how it is run
	}
	w.code(sh.fork(), value, unread)
}

// shellSetting follows a program that others are to take for the shell. One that is a shell
// reads what they give it, which is looked at there.
func (w *walker) shellSetting(sh *shell, value string) {
	if value = strings.TrimSpace(value); !isShell(called(value)) {
		w.code(sh.child(), value, unread)
	}
}

// inherited reports whether a value, or the program in it, is one that a variable of the
// environment has.
func inherited(value string) bool {
	return strings.HasPrefix(value, string(outside)) || strings.HasPrefix(value, string(solid))
}

// flagged follows flags that a program is given by a variable, or by a file.
func (w *walker) flagged(sh *shell, program, value string) {
	var words []field
	for _, word := range quotedWords(strings.ReplaceAll(value, "\x1f", " "), " \t\n") {
		words = append(words, field{text: word})
	}
	if program == "make" {
		for _, word := range words {
			w.recipes(sh, word.text)
		}
	}
	w.interpreter(sh, program, []field{{text: value}}, unread)
	w.codeIn(sh, program, words)
	w.options(sh, program, words)
}

// loaded follows a file that a program loads because a variable names it.
func (w *walker) loaded(sh *shell, name, kind, file string) {
	if kind == "" {
		w.expanded(sh, file)
	}
	if kind == "library" && !known(file) {
		return // somebody's, as what a program is linked with
	}
	text := w.file(sh, field{text: file}, unread)
	program, flags := strings.CutPrefix(kind, "--")
	switch {
	case text == "":
	case open(text):
		w.give(name, "it names code that is only known when it runs")
	case kind == "":
		w.code(sh.child(), text, unread)
	case kind == "make":
		w.recipes(sh, text)
	case flags:
		w.flagged(sh, program, text)
	default:
		w.calls(sh, languages()[kind], text)
	}
}

// put sets a variable of a shell that a command sets, and follows what runs in it.
func (w *walker) put(sh *shell, name, value string) {
	sh.set(name, value)
	w.codeSetting(sh, name, value)
}
