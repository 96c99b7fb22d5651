package guard

import (
	"slices"
	"strings"
)

// gitCommands are the commands of git itself. Any other word behind git may be an
// alias of somebody's configuration, for anything.
var gitCommands = strings.Fields(`add am annotate apply archive bisect blame branch bugreport bundle cat-file
check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean
clone column commit commit-graph commit-tree config count-objects credential describe diagnose diff diff-files
diff-index diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref
for-each-repo format-patch fsck gc get-tar-commit-id grep gui hash-object help hook imap-send index-pack init
init-db instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge
merge-base merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes
pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push quiltimport range-diff read-tree
rebase receive-pack reflog refs remote repack replace replay request-pull rerere reset restore rev-list rev-parse
revert rm scalar send-email send-pack shell shortlog show show-branch show-index show-ref sparse-checkout
stage stash status stripspace submodule subtree svn switch symbolic-ref tag unpack-file unpack-objects
update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag
version whatchanged worktree write-tree`)

// gitValues are git's own flags whose value is the next word.
var gitValues = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--exec-path", "--list-cmds"}

// withoutValues are the words of a command, of git with a mark for what is not known of the
// directories that its own flags name: they are none of its commands.
func withoutValues(fields []field) []field {
	if called(fields[0].text) != "git" {
		return fields
	}
	out := fields
	for i := 1; i+1 < len(fields) && strings.HasPrefix(fields[i].text, "-"); i++ {
		if !slices.Contains(gitValues, fields[i].text) {
			continue
		}
		if i++; fields[i-1].text == "-C" && !fields[i].many && !known(fields[i].text) && !absolute(fields[i].text) {
			out = slices.Clone(out)
			out[i].text = string(someDir)
		}
	}
	return out
}

// git follows a call of git: its own flags are left out, so that git -C dir push
// is git push; aliases that the line makes are what they stand for; commands that
// it runs are commands.
func (w *walker) git(sh *shell, fields []field, stdin string) string {
	args := fields[1:]
	aliases := map[string]string{}
	w.gitMade(sh, aliases)
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		flag := args[0].text
		if slices.Contains(gitValues, flag) && len(args) > 1 {
			if flag == "-c" || flag == "--config-env" {
				w.gitSetting(sh, aliases, args[1].text, flag == "-c")
			}
			args = args[1:]
		}
		if setting, ok := strings.CutPrefix(flag, "--config-env="); ok {
			w.gitSetting(sh, aliases, setting, false)
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return string(outside)
	}
	name := args[0].text
	w.note(sh, append([]field{fields[0]}, args...))
	alias, ok := aliases[strings.ToLower(name)]
	if !ok {
		alias, ok = sh.aliases["git "+strings.ToLower(name)]
	}
	switch {
	case ok && strings.HasPrefix(alias, "!"):
		inner := sh.child()
		inner.params = args[1:]
		w.code(inner, alias[1:]+" \"$@\"", stdin)
		return string(anything)
	case ok:
		b := &splitter{ifs: " \t\n"}
		b.split(alias)
		b.end()
		return w.run(sh, append(append([]field{fields[0]}, b.fields...), args[1:]...), stdin)
	case known(name) && !slices.Contains(gitCommands, name):
		w.found = append(w.found, command{fields: []field{{text: fields[0].text}, {text: string(anything), many: true}}, dir: sh.dir, links: sh.links, effort: w.effort, why: "git " + name + ": " + name + " is no command of git itself and may be an alias for any"})
	}
	w.gitPrograms(sh, args)
	w.gitRuns(sh, name, args[1:], stdin)
	switch name {
	case "rev-parse":
		if slices.ContainsFunc(args, func(f field) bool { return f.text == "--show-toplevel" }) {
			return string(below) + "\n"
		}
		return string(outside)
	case "ls-files", "ls-tree", "diff", "status", "grep":
		return "./" + string(outside)
	}
	return string(outside)
}

// gitRuns follows the commands that git's commands run, and the aliases that they
// make.
func (w *walker) gitRuns(sh *shell, name string, args []field, stdin string) {
	words := texts(args)
	for i, word := range words {
		// A repository whose address is a program.
		if _, code, ok := strings.Cut(word, "ext::"); ok {
			w.code(sh.child(), strings.ReplaceAll(code, "% ", " "), unread)
		}
		short := map[string]string{"clone": "-u", "difftool": "-x", "rebase": "-x", "instaweb": "-d", "shell": "-c"}[name]
		switch code, joined := strings.CutPrefix(word, short); {
		case short == "" || !joined:
		case code != "":
			w.code(sh.child(), code, unread)
		case i+1 < len(words):
			w.code(sh.child(), words[i+1], unread)
		}
		setting, joined := strings.CutPrefix(word, "--config=")
		if (name == "clone" || name == "submodule") && (joined || i > 0 && (words[i-1] == "-c" || words[i-1] == "--config")) {
			w.gitSetting(sh, map[string]string{}, setting, true)
		}
		if server, ok := strings.CutPrefix(word, "--smtp-server="); ok && strings.Contains(server, "/") { // a program
			w.code(sh.child(), server, unread)
		}
		if name == "filter-repo" && i > 0 && strings.HasSuffix(words[i-1], "-callback") {
			w.calls(sh, python, word)
		}
	}
	switch name {
	case "config":
		for i, word := range words {
			if i+1 < len(words) && !strings.HasPrefix(word, "-") {
				w.gitConfigured(sh, word, words[i+1])
			}
			if alias, ok := strings.CutPrefix(strings.ToLower(word), "alias."); ok && i+1 < len(words) {
				sh.aliases["git "+alias] = words[i+1]
			}
		}
	case "submodule":
		if i := slices.Index(words, "foreach"); i >= 0 {
			rest := args[i+1:]
			for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
				rest = rest[1:]
			}
			w.code(sh.child(), strings.Join(texts(rest), " "), stdin)
		}
	case "bisect":
		if len(args) > 1 && words[0] == "run" {
			w.run(sh.child(), args[1:], stdin)
		}
	case "rebase":
		for i, word := range words {
			if strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "x") && len(word) > 2 && i+1 < len(words) {
				w.code(sh.child(), words[i+1], stdin) // --exec is known anyway
			}
		}
	case "for-each-repo", "merge-index":
		rest := args
		for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
			if rest[0].text == "--config" && len(rest) > 1 {
				rest = rest[1:]
			}
			rest = rest[1:]
		}
		if name == "for-each-repo" {
			rest = append(literal([]string{"git"}), rest...)
		}
		w.run(sh.child(), rest, unread)
	case "grep":
		for _, word := range words {
			if code, ok := strings.CutPrefix(word, "-O"); ok && code != "" {
				w.code(sh.child(), code, unread)
			}
		}
	case "filter-branch":
		for i, word := range words {
			if strings.HasSuffix(word, "-filter") && i+1 < len(words) {
				w.code(sh.child(), words[i+1], stdin)
			}
		}
	}
}
