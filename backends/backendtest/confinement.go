package backendtest

import (
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

func confinementTests() []test {
	return []test{
		{name: "StandardIsConfined", needs: needShell | needLandlock, closed: true, run: testStandard},
		{name: "ReadOnlyWritesNothing", needs: needShell | needLandlock, closed: true, run: testReadOnly},
		{name: "ModesBelowTheCeiling", needs: needShell, run: testCeiling},
	}
}

// in is a request for a tool in a permission mode.
func in(mode tool.Mode, name string) tool.Request { return tool.Request{Name: name, Mode: mode} }

// bashIn runs a command line in a mode.
func (w *world) bashIn(mode tool.Mode, line string) ran {
	w.Helper()
	res, err := w.request(w.Context(), in(mode, "bash"), args{"command": line})
	if err != nil {
		w.Fatalf("%s: %s: %v", mode, line, describe(err))
	}
	return decode[ran](w, res)
}

// reopen gives the test a world with these modes.
func (w *world) reopen(mode, ceiling tool.Mode) *world {
	w.Helper()
	w.removed = true // nothing was made
	other := newWorldWith(w.T, w.h, mode, ceiling)
	other.open()
	return other
}

// testStandard tries every way to change a file outside the workspace, and
// shows by an unconfined call that only the confinement stands in the way.
func testStandard(w *world) {
	w = w.reopen(tool.Standard, tool.Unconfined)
	victim := w.h.Outside(w.T) + "/caisson-" + random(4)
	if r := w.bashIn(tool.Unconfined, "echo precious > "+victim); r.ExitCode != 0 {
		w.Fatalf("the place outside cannot be written at all: %+v", r)
	}
	defer w.bashIn(tool.Unconfined, "rm -rf "+victim+"*")
	w.write("mine", []byte("mine\n"))
	for what, line := range map[string]string{
		"create":   "echo x > " + victim + "-new",
		"append":   "echo x >> " + victim,
		"truncate": ": > " + victim,
		"remove":   "rm -f " + victim + " && ! test -e " + victim,
		"move out": "mv " + victim + " stolen",
		"move in":  "mv -f mine " + victim,
		"link":     "ln mine " + victim + "-link",
		"symlink":  "ln -s mine " + victim + "-symlink",
		"mkdir":    "mkdir " + victim + "-dir",
		"child":    "sh -c '(echo x > " + victim + ")'",
	} {
		if r := w.bash(line); r.ExitCode == 0 {
			w.Errorf("%s outside the workspace was not denied: %+v", what, r)
		}
	}
	if r := w.bashIn(tool.Unconfined, "cat "+victim+"; ls -d "+victim+"*"); r.Stdout != "precious\n"+victim+"\n" {
		w.Errorf("outside there is now: %+v", r)
	}
	w.sh("echo x > in-the-workspace && mkdir d && mv in-the-workspace d && echo x > $TMPDIR/t && cat $TMPDIR/t && echo x > /dev/null")

	p := w.start(tool.StartRequest{Command: "echo x > " + victim + "-process"})
	if end := w.ended(p.ID); end.ExitCode == 0 {
		w.Errorf("a process wrote outside: %+v", end)
	}
}

func testReadOnly(w *world) {
	w = w.reopen(tool.Standard, tool.Standard)
	w.write("f", []byte("content\n"))
	for what, line := range map[string]string{
		"create": "echo x > new", "append": "echo x >> f", "remove": "rm -f f && ! test -e f", "mkdir": "mkdir d",
	} {
		if r := w.bashIn(tool.ReadOnly, line); r.ExitCode == 0 {
			w.Errorf("%s in read_only: %+v", what, r)
		}
	}
	if r := w.bashIn(tool.ReadOnly, "cat f && echo x > $TMPDIR/t && cat $TMPDIR/t"); r.Stdout != "content\nx\n" {
		w.Errorf("reading and the temporary directory: %+v", r)
	}
	w.refusedRequest(in(tool.ReadOnly, "write_file"), args{"path": "f", "content": "x"}, tool.Denied)
	w.refusedRequest(in(tool.ReadOnly, "edit_file"), args{"path": "f", "old_text": "c", "new_text": "x"}, tool.Denied)
	if res, err := w.request(w.Context(), in(tool.ReadOnly, "read_file"), args{"path": "f"}); err != nil || res.IsError {
		w.Errorf("reading in read_only: %v", describe(err))
	}
	w.holds("f", []byte("content\n"))
	if w.exists("new") || w.exists("d") {
		w.Error("something was made in read_only")
	}
}

func testCeiling(w *world) {
	for _, mode := range []tool.Mode{tool.Unconfined, "root"} {
		if mode.Within(w.mode) {
			continue
		}
		_, err := w.request(w.Context(), in(mode, "bash"), args{"command": "touch PROOF"})
		w.refusal("bash as "+string(mode), err, string(mode), tool.Denied, tool.InvalidParams)
		_, err = w.env.Processes().Start(w.Context(), tool.StartRequest{
			OperationID: random(8), Command: "touch PROOF", Actor: w.binding.Session, PermissionMode: mode,
		})
		w.refusal("a process as "+string(mode), err, string(mode), tool.Denied, tool.InvalidParams)
	}
	if w.exists("PROOF") {
		w.Error("a call above the ceiling ran")
	}
	if out := w.bashIn(w.mode, "echo works"); strings.TrimSpace(out.Stdout) != "works" {
		w.Errorf("at the ceiling: %+v", out)
	}
}
