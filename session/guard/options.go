package guard

import (
	"slices"
	"strings"
	"sync"
)

// codeOptions are the settings of programs that are code or programs, in small letters; * is
// any text. They stand in words as name=value or as two words, behind flags such as -D, -o and
// --config or as flags themselves, and in files of the program.
var codeOptions = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"cargo":     "build.rustc build.rustc-wrapper build.rustc-workspace-wrapper build.rustdoc target.*.runner target.*.linker doc.browser",
		"rustc":     "linker",
		"npm":       "script-shell shell editor git browser viewer scripts.*",
		"yarn":      "script-shell shell editor git",
		"hg":        "ui.editor ui.ssh ui.merge pager.pager alias.* hooks.* merge-tools.*.executable extdiff.cmd.* diff-tools.*.executable",
		"svn":       "config:tunnels:* config:helpers:*",
		"jj":        "ui.editor ui.pager ui.diff-editor ui.merge-editor ui.diff.tool merge-tools.*.program",
		"cmake":     "cmake_*_compiler cmake_*_compiler_launcher cmake_*_linker_launcher cmake_make_program cmake_linker cmake_ar",
		"mvn":       "exec.executable jvm",
		"apt":       "*::pre-invoke *::pre-invoke:: *::post-invoke *::post-invoke:: *::pre-install-pkgs *::pre-install-pkgs::",
		"restic":    "sftp.command",
		"mail":      "sendmail mta editor visual pager shell",
		"lftp":      "sftp:connect-program fish:connect-program",
		"sshfs":     "ssh_command",
		"aws":       "commands",
		"vim":       "makeprg grepprg shell equalprg formatprg keywordprg cscopeprg csprg mp gp ep fp kp sh",
		"systemctl": "service.exec*",
		"tox":       "*.commands *.commands_pre *.commands_post commands",
		"pipenv":    "scripts.*",
	}
})

// sameOptions are the programs that have the settings of another one.
var sameOptions = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"pnpm": "npm", "npx": "npm", "apt-get": "apt", "aptitude": "apt", "mailx": "mail", "nvim": "vim", "vi": "vim", "ex": "vim", "gvim": "vim", "view": "vim", "rvim": "vim",
		"vimdiff": "vim", "rustdoc": "rustc", "ctest": "cmake", "ccmake": "cmake", "mvnw": "mvn",
	}
})

// optionFiles are the ends of the names of files that hold settings of a program.
var optionFiles = sync.OnceValue(func() map[string]string {
	return map[string]string{
		".cargo/config.toml": "cargo", ".cargo/config": "cargo", ".npmrc": "npm", ".hgrc": "hg", "/hgrc": "hg", ".service": "systemctl", "tox.ini": "tox", "Pipfile": "pipenv",
		".mailrc": "mail", ".config/jj/config.toml": "jj",
	}
})

// settingPrograms take words like NAME=value for variables of the environment.
var settingPrograms = strings.Fields("make gmake bmake remake mingw32-make configure go systemctl launchctl cmake")

// options follows the settings of a program that its words hold, and those in files that the
// line itself wrote.
func (w *walker) options(sh *shell, program string, args []field) {
	if slices.Contains(settingPrograms, program) {
		for _, a := range args {
			if name, value, cut := strings.Cut(a.text, "="); cut && isName(name) {
				w.codeSetting(sh, name, value)
			}
		}
	}
	table := program
	if same, ok := sameOptions()[program]; ok {
		table = same
	}
	names, ok := codeOptions()[table]
	if !ok {
		return
	}
	patterns := strings.Fields(names)
	setting := slices.IndexFunc(args, sets)
	for i, a := range args {
		words := []string{a.text}
		within := table == "vim" || table == "lftp" // its commands stand in a word
		if within {
			words = quotedWords(a.text, " \t\n")
		}
		for j, word := range words {
			name, value, cut := strings.Cut(optionName(word), "=")
			if inner, _, ok := strings.Cut(value, "="); ok && isOption(patterns, strings.TrimSpace(inner)) { // --flag=name=value
				name, value, _ = strings.Cut(value, "=")
			}
			if table == "cmake" {
				name, _, _ = strings.Cut(name, ":") // a type
			}
			if !isOption(patterns, strings.TrimSpace(name)) {
				continue
			}
			switch {
			case cut && strings.EqualFold(name, "shell"), cut && name == "sh":
				w.shellSetting(sh, optionValue(value))
			case cut:
				w.code(sh.child(), optionValue(value), unread)
			case within && table == "lftp" && j+1 < len(words):
				w.code(sh.child(), words[j+1], unread)
			case i+1 < len(args) && !within && (strings.HasPrefix(a.text, "-") || setting >= 0 && setting < i):
				w.code(sh.child(), optionValue(args[i+1].text), unread)
			}
		}
	}
	for _, file := range w.fileNames(sh) {
		for end, of := range optionFiles() {
			if of == table && strings.HasSuffix(file, end) {
				w.optionFile(sh, program, patterns, w.text(sh, file))
			}
		}
	}
}

// sets reports whether a word says that the name and the value of a setting follow.
func sets(f field) bool { return f.text == "set" || f.text == "config" || f.text == "c" }

// optionName is a word without what stands before the name of a setting: dashes, and a short
// flag that it is joined to.
func optionName(word string) string {
	long := strings.HasPrefix(word, "--")
	name := strings.TrimLeft(word, "-")
	if name == word || long {
		if rest, ok := strings.CutPrefix(name, "config="); ok {
			return rest
		}
		return name
	}
	if rest := name[min(1, len(name)):]; strings.IndexByte("DCoS", (name + " ")[0]) >= 0 && rest != "" {
		return rest
	}
	return name
}

func isOption(patterns []string, name string) bool {
	name = strings.ToLower(strings.NewReplacer(`"`, "", `'`, "").Replace(name))
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, name) })
}

// optionValue is the code in a value: without its quotes, and a list as one line.
func optionValue(value string) string {
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
		return strings.NewReplacer(`"`, "", `'`, "", ",", " ", "]", "", "}", "", ";", "").Replace(value[1:])
	}
	if len(value) > 1 && strings.IndexByte(`"'`, value[0]) >= 0 && value[len(value)-1] == value[0] {
		value = value[1 : len(value)-1]
	}
	return strings.TrimLeft(value, "!")
}

// optionFile follows the settings of a file of sections and of lines with names and values.
func (w *walker) optionFile(sh *shell, program string, patterns []string, text string) {
	if strings.HasPrefix(text, copied) {
		return
	}
	if open(text) {
		w.give(program, "it reads settings that are only known when it runs")
		return
	}
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(head, "]") {
			section = strings.Trim(head, "[]") + "."
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if ok && (isOption(patterns, section+strings.TrimSpace(name)) || isOption(patterns, strings.TrimSpace(name))) {
			w.code(sh.child(), optionValue(value), unread)
		}
	}
}
