package guard

import (
	"slices"
	"strconv"
	"strings"
)

// gitCode are the settings of git that are shell code or a program, in small letters; * is
// a name.
var gitCode = strings.Fields(`core.sshcommand core.pager core.editor core.fsmonitor core.askpass core.gitproxy
core.alternaterefscommand sequence.editor diff.external gpg.program gpg.*.program gpg.ssh.defaultkeycommand pager.*
difftool.*.cmd difftool.*.path mergetool.*.cmd mergetool.*.path guitool.*.cmd diff.*.command diff.*.textconv
merge.*.driver filter.*.clean filter.*.smudge filter.*.process browser.*.cmd browser.*.path man.*.cmd man.*.path
web.browser instaweb.httpd instaweb.browser remote.*.uploadpack remote.*.receivepack uploadpack.packobjectshook
interactive.difffilter trailer.*.command trailer.*.cmd tar.*.command hook.*.command sendemail.smtpserver
sendemail.sendmailcmd sendemail.tocmd sendemail.cccmd sendemail.headercmd imap.tunnel`)

// gitHooks stands among aliases for the directory of hooks that the line has set, and
// cannot be the name of one.
const gitHooks = "git config core.hookspath"

// gitConfigured follows a setting that is code, or begins it with an exclamation mark or
// is the path of a program, as credential helpers do.
func (w *walker) gitConfigured(sh *shell, name, value string) {
	name = strings.ToLower(name)
	if code, ok := strings.CutPrefix(value, "!"); ok && !strings.HasPrefix(name, "alias.") {
		w.code(sh.child(), code, unread)
		return
	}
	if _, code, ok := strings.Cut(name, "ext::"); ok { // of an address that stands for another one
		code, _, _ = strings.Cut(code, ".insteadof")
		w.code(sh.child(), strings.ReplaceAll(code, "% ", " "), unread)
		return
	}
	switch {
	case name == "core.hookspath":
		sh.aliases[gitHooks] = resolve(sh.dir, value)
		return
	case strings.HasPrefix(name, "credential.") && strings.HasSuffix(name, ".helper") && absolute(value):
		w.code(sh.child(), value, unread)
		return
	}
	for _, pattern := range gitCode {
		if fits(pattern, name) {
			w.code(sh.child(), value, unread)
			return
		}
	}
}

// gitSetting takes alias.name=value, and other settings that are code. Of one that is not
// literal the value is the name of a variable that holds it.
func (w *walker) gitSetting(sh *shell, aliases map[string]string, setting string, literal bool) {
	if w.charge(codeWork) {
		return
	}
	name, value, _ := strings.Cut(setting, "=")
	if !literal {
		value = sh.lookup(value)
	}
	w.gitConfigured(sh, name, value)
	switch alias, ok := strings.CutPrefix(strings.ToLower(name), "alias."); {
	case ok && !literal && !known(value):
		aliases[alias] = "!" + string(anything)
	case ok:
		aliases[alias] = value
	case strings.HasPrefix(strings.ToLower(name), "include") && !w.over(sh):
		sh.depth++ // it may include itself
		w.gitConfiguration(sh, aliases, w.text(sh, resolve(sh.dir, value)))
		sh.depth--
	}
}

// gitMade follows the settings of git that the line itself has put where git looks for
// them: into variables and into files of configuration.
func (w *walker) gitMade(sh *shell, aliases map[string]string) {
	if count, err := strconv.Atoi(sh.lookup("GIT_CONFIG_COUNT")); err == nil {
		for i := range min(count, maxTurns) {
			n := strconv.Itoa(i)
			w.gitSetting(sh, aliases, sh.lookup("GIT_CONFIG_KEY_"+n)+"="+sh.lookup("GIT_CONFIG_VALUE_"+n), true)
		}
	}
	if list, ok := sh.vars["GIT_CONFIG_PARAMETERS"]; ok && len(list.list) > 0 {
		// Each is quoted, or its name and its value are: 'a.b=c' 'd.e'='f'
		for i, setting := range strings.Split(strings.ReplaceAll(list.list[0], `'='`, "="), `'`) {
			if i%2 == 1 {
				w.gitSetting(sh, aliases, setting, true)
			}
		}
	}
	read := []string{}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if _, ok := sh.vars[name]; ok {
			read = append(read, resolve(sh.dir, sh.lookup(name)))
		}
	}
	for _, name := range w.fileNames(sh) {
		if slices.Contains(read, name) || base(name) == ".gitconfig" || strings.HasSuffix(name, ".git/config") || strings.HasSuffix(name, "/git/config") {
			w.gitConfiguration(sh, aliases, w.text(sh, name))
		}
	}
}

// gitConfiguration follows the settings of a file of configuration.
func (w *walker) gitConfiguration(sh *shell, aliases map[string]string, text string) {
	if strings.HasPrefix(text, copied) {
		return
	}
	if strings.HasPrefix(text, string(anything)) {
		w.give("git", "it reads settings that are only known when it runs")
		return
	}
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "["); ok {
			head, line, _ = strings.Cut(head, "]")
			section = strings.NewReplacer(` "`, ".", `"`, "").Replace(head) + "."
			line = strings.TrimSpace(line)
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `"`, "").Replace(strings.TrimSpace(value))
		w.gitSetting(sh, aliases, section+strings.TrimSpace(name)+"="+value, true)
	}
}

// hookNames are hooks that git runs, for directories that may be a template of a repository's.
var hookNames = strings.Fields(`applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
pre-rebase post-checkout post-merge pre-push post-rewrite pre-receive update post-receive post-update push-to-checkout pre-auto-gc fsmonitor-watchman`)

// gitPrograms follows the programs that the line itself has put where git looks for them:
// hooks, of which any command may run any, and commands and helpers by their names.
func (w *walker) gitPrograms(sh *shell, args []field) {
	hooks := sh.aliases[gitHooks]
	names := []string{}
	if len(args) > 0 && !slices.Contains(gitCommands, args[0].text) {
		names = append(names, "git-"+args[0].text)
	}
	for _, a := range args {
		if helper, _, ok := strings.Cut(a.text, "::"); ok {
			names = append(names, "git-remote-"+helper)
		}
	}
	for _, name := range w.fileNames(sh) {
		hook := strings.Contains(name, ".git/hooks/") || strings.HasSuffix(name, "/hooks/"+base(name)) && slices.Contains(hookNames, base(name)) || hooks != "" && strings.HasPrefix(name, hooks+"/")
		if hook || slices.Contains(names, base(name)) {
			w.own(sh.child(), []string{w.text(sh, name)}, []field{{text: name}}, unread)
		}
	}
}
