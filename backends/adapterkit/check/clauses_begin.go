package check

import (
	"os"
	"path/filepath"
	"strings"
)

func tokens() []clause {
	return []clause{
		rule("token-wrong", sectionFrames, "a frame with another token is an error", func(t *trial) {
			t.refusesToken("a token that is not the first one", strings.Repeat("0", 64))
		}),
		rule("token-missing", sectionFrames, "a frame without the token is an error", func(t *trial) {
			t.refusesToken("no token", nil)
		}),
		rule("token-fixed", sectionFrames, "the first initialize fixes the token, and no later one does", func(t *trial) {
			method, data := t.harmless()
			other := strings.Repeat("1", 64)
			w := t.peer.expect("check-token", "initialize")
			t.peer.send(args{"id": "check-token", "method": "initialize", "token": other, "data": t.peer.binding()})
			t.want(t.await(w).failed != "", "initialize with another token than the first one must be an error")
			r := t.ask(method, data)
			t.want(r.failed == "", "the first token must go on to be the right one, but %s says %s", method, r.failed)
		}).apart(),
	}
}

// refusesToken asks for what works with the right token.
func (t *trial) refusesToken(why string, token any) {
	method, data := t.harmless()
	id := "check-" + t.clause.Name
	w := t.peer.expect(id, method)
	t.peer.send(args{"id": id, "method": method, "token": token, "data": data})
	t.want(t.await(w).failed != "", "%s must be an error", why)
	r := t.ask(method, data)
	t.want(r.failed == "", "with the right token it must go on, but %s says %s", method, r.failed)
}

// harmless is a request that the adapter answers well. One that answers nothing else
// has to answer the initialize that it has answered before.
func (t *trial) harmless() (method string, data args) {
	tools := []struct {
		name string
		args args
	}{{"list_files", args{}}, {"glob", args{"pattern": "*"}}, {"grep", args{"pattern": "x"}}}
	for _, tool := range tools {
		if r := t.execute(tool.name, tool.args, ""); r.refused == "" {
			return "execute", t.call(tool.name, tool.args, "")
		}
	}
	if t.known.mode != "" {
		return "execute", t.call("bash", args{"command": "true"}, t.known.mode)
	}
	for _, method := range []string{"process/list", "tools/list"} {
		if r := t.ask(method, args{}); r.failed == "" {
			return method, args{}
		}
	}
	b := t.peer.binding()
	if r := t.ask("initialize", b); r.failed != "" {
		t.notOffered("it answers none of list_files, glob, grep, bash, process/list and tools/list, and no initialize that is the same")
	}
	return "initialize", b
}

func beginning() []clause {
	return []clause{
		rule("initialize-reply", sectionInitialize, "the reply has version 4, the root with its symlinks resolved, and capabilities", driveInitialized).unprepared(),
		rule("version", sectionInitialize, "another version is refused", func(t *trial) {
			for _, version := range []any{3, 5} {
				p := t.open()
				t.on(p).refuses("the version is another one than 4", "initialize", p.binding().with("version", version))
				t.want(!p.rootIsHere(), "nothing may be done for another version, but the root was made")
			}
		}).unprepared(),
		rule("before-initialize", sectionInitialize, "everything else is refused before initialize", func(t *trial) {
			p := t.open()
			t.peer = p
			for _, method := range []string{"execute", "process/list", "tools/list", "export/read"} {
				t.on(p).refuses("it comes before initialize", method, t.call("list_files", args{}, ""))
			}
		}).unprepared(),
		rule("failed-initialize", sectionInitialize, "after a failed initialize a new connection is needed", func(t *trial) {
			p := t.open()
			t.on(p).refuses("the version is 3, and the root relative", "initialize", p.binding().with("version", 3).with("root", "relative"))
			w := p.request("initialize", p.binding())
			select {
			case <-p.ended: // it may have ended, too
			case r := <-w.replies:
				t.want(r.failed != "", "an initialize after one that failed must be refused")
			}
		}).unprepared(),
		rule("names", sectionInitialize, "session and identity are one path component, root is absolute", func(t *trial) {
			for _, bad := range []struct{ member, value string }{{"session", "../x"}, {"identity", ".."}, {"root", "relative"}} {
				p := t.open()
				t.on(p).refuses(bad.member+" is "+bad.value, "initialize", p.binding().with(bad.member, bad.value))
			}
		}).unprepared(),
		rule("binding-repeat", sectionInitialize, "the same initialize may be repeated", func(t *trial) {
			r := t.ask("initialize", t.peer.binding())
			t.want(r.failed == "", "an initialize that is the same must be accepted: %s", r.failed)
			t.object("the reply", r.data, "version:number root:string")
		}),
		rule("binding-immutable", sectionInitialize, "the binding never changes", func(t *trial) {
			b := t.peer.binding()
			for name, changed := range map[string]args{
				"root": b.with("root", t.peer.root+"-2"), "session": b.with("session", "other"), "identity": b.with("identity", "other"),
				"environment":              b.with("environment", map[string]string{"CAISSON_CHECK": "other"}),
				"remove_workspace_on_exit": b.with("remove_workspace_on_exit", true),
			} {
				t.refuses("its "+name+" is not that of the first", "initialize", changed)
			}
		}),
		rule("binding-environment", sectionInitialize, "environment may be left out when it is repeated, and stays as first given", func(t *trial) {
			if r := t.ask("initialize", t.peer.binding()); r.failed != "" || !t.sees() {
				t.notOffered("initialize cannot be repeated at all, or commands see no variables")
			}
			r := t.ask("initialize", t.peer.binding().with("environment", nil))
			t.want(r.failed == "", "an initialize without environment means as first given: %s", r.failed)
			t.want(t.sees(), "after an initialize without environment, commands must have the variables as first given")
		}).apart(),
		rule("environment", sectionInitialize, "commands have the variables of environment", func(t *trial) {
			t.want(t.sees(), "a command must have the variable CAISSON_CHECK with the value that initialize gave")
		}),
		rule("root-made", sectionInitialize, "a missing root is made, mode 0700", func(t *trial) {
			t.needsHere()
			t.peer = t.open()
			t.initialize(t.peer)
			info, err := os.Stat(t.peer.root)
			t.want(err == nil && info.IsDir(), "the root must be made: %v", err)
			t.want(info.Mode().Perm() == 0o700, "the root must be made with mode 0700, not %04o", info.Mode().Perm())
		}).unprepared(),
		rule("root-required", sectionInitialize, "with require_existing_workspace a missing root is an error", func(t *trial) {
			t.needsHere()
			p := t.open()
			t.on(p).refuses("the root is missing and require_existing_workspace is set", "initialize", p.binding().with("require_existing_workspace", true))
			t.want(!p.rootIsHere(), "with require_existing_workspace the root must not be made")
			p = t.open()
			t.want(os.Mkdir(p.root, 0o700) == nil, "a directory cannot be made")
			r := t.on(p).ask("initialize", p.binding().with("require_existing_workspace", true))
			t.want(r.failed == "", "with require_existing_workspace a root that exists must do: %s", r.failed)
		}).unprepared(),
	}
}

func driveInitialized(t *trial) {
	p := t.open()
	target := filepath.Join(p.dir, "real")
	link := filepath.Join(p.dir, "link")
	err := os.Mkdir(target, 0o700)
	if err == nil {
		err = os.Symlink(target, link)
	}
	linked := err == nil && t.known.local
	b := p.binding()
	if linked {
		b = b.with("root", link)
	}
	a := t.object("the reply to initialize", t.on(p).must("initialize", b), "version:number root:string capabilities?:list")
	t.want(a["version"] == 4.0, "version must be 4, not %v", a["version"])
	for _, c := range list(a["capabilities"]) {
		t.want(kindOf(c) == "string", "a capability must be a string, not %v", c)
	}
	if linked {
		if target, err = filepath.EvalSymlinks(target); err == nil {
			t.want(a["root"] == target, "root must be %s, with its symlinks resolved, not %v", target, a["root"])
		}
	}
}

// sees reports whether a command has the variable of the binding.
func (t *trial) sees() bool {
	return t.command("printf %s \"$CAISSON_CHECK\"")["stdout"] == t.peer.secret
}

// list is a member that is a list, or none.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}
