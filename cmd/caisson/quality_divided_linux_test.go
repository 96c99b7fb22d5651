package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// divided configures a place whose sessions have their files here, their shell in a
// container that mounts the same folder, and their plugins in WebAssembly.
func (p *place) divided(image string) {
	p.Helper()
	config, err := json.Marshal(members{"execution_environments": members{
		"overrides": members{"shell.*": "box", "plugins.*": "pure"},
		"profiles": members{
			"box":  members{"backend": "docker", "image": image, "pull": "never", "host_workspace": "${workspaceFolder}"},
			"away": members{"backend": "docker", "image": image, "pull": "never"},
			"pure": members{"backend": "wasm", "preopens": []string{"/::${workspaceFolder}"}},
		},
	}})
	if err == nil {
		err = os.WriteFile(p.config(), config, 0o600)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// plugin registers docs/examples/wordcount.
func (p *place) plugin() {
	p.Helper()
	module := filepath.Join(p.home, "wordcount.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", module, "../../docs/examples/wordcount")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		p.Fatalf("build the plugin: %v\n%s", err, out)
	}
	if out, err := p.run("tools", "register", module); err != nil {
		p.Fatalf("register the plugin: %v\n%s", err, out)
	}
}

// git is the output of a git command that must succeed.
func (w *work) git(subcommand string, args ...string) string {
	w.Helper()
	r := into[ran](w, w.call("git", members{"subcommand": subcommand, "args": args}))
	if r.ExitCode != 0 {
		w.Fatalf("git %s: %+v", subcommand, r)
	}
	return r.Stdout
}

// text is a file as read_file shows it.
func (w *work) text(path string) string {
	w.Helper()
	return into[struct{ Content string }](w, w.call("read_file", members{"path": path})).Content
}

// One session has its files here, its shell in a container and its plugins in
// WebAssembly, and all of them see one folder.
func testDivided(t *testing.T, image string) {
	p := newPlace(t, members{})
	p.divided(image)
	p.plugin()
	events := make(chan protocol.ExecutionParams, 100)
	w := p.serve(func(o *client.Options, init *protocol.InitializeParams) {
		init.Capabilities.ExecutionEvents = true
		o.ExecutionStarted = func(e protocol.ExecutionParams) { events <- e }
	}).open("", "divided")
	if w.session.Profile != "local" || w.session.Root != p.folder {
		t.Fatalf("opened %+v", w.session)
	}
	if made := p.made(); made != "" {
		t.Errorf("before anything runs there is %s", made)
	}
	w.git("init", "--quiet")
	w.call("write_file", members{"path": "poem.txt", "content": "one two\nthree\n"})
	w.git("add", "poem.txt")

	// A plugin's output is read by read_file, changed by bash, and seen by git.
	w.call("word_count", members{"path": "poem.txt", "out": "counts.txt"})
	if got := w.text("counts.txt"); got != "3 words\n2 lines\n" {
		t.Errorf("the plugin's file holds %q", got)
	}
	if got := w.sh("pwd; cat counts.txt; echo more >> counts.txt; echo four >> poem.txt"); got != "/workspace\n3 words\n2 lines\n" {
		t.Errorf("the shell sees %q", got)
	}
	if got := w.text("counts.txt"); got != "3 words\n2 lines\nmore\n" {
		t.Errorf("after the shell the file holds %q", got)
	}
	if got := w.git("status", "--porcelain"); got != "AM poem.txt\n?? counts.txt\n" {
		t.Errorf("git sees %q", got)
	}
	if raw, err := os.ReadFile(filepath.Join(p.folder, "counts.txt")); err != nil || string(raw) != "3 words\n2 lines\nmore\n" {
		t.Errorf("the folder holds %q, %v", raw, err)
	}
	for _, want := range []string{"git local", "write_file local", "git local", "word_count pure", "read_file local", "bash box", "read_file local", "git local"} {
		if e := <-events; e.Tool+" "+e.Profile != want {
			t.Errorf("the event of %s %s, want %s", e.Tool, e.Profile, want)
		}
	}
	dividedTools(w)
	dividedPaths(w)
	process := w.background("echo begun; exec sleep 1000")
	if process.Environment.Profile != "box" || process.Environment.Backend != "docker" {
		t.Errorf("the process is in %+v", process.Environment)
	}
	w.reads(process.ID, "begun\n")

	// A service that is killed leaves all of it as it is.
	w.service.kill()
	w = p.serve().open("", "divided")
	if now := w.process(process.ID); now.Status != protocol.ProcessRunning || now.Environment != process.Environment {
		t.Errorf("after a restart the process is %+v", now)
	}
	if got := w.sh("tail -n 1 counts.txt"); got != "more\n" {
		t.Errorf("after a restart the shell sees %q", got)
	}
	w.call("word_count", members{"text": "a"})
	if _, err := w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: w.session.ID}); err != nil {
		t.Fatal(explain(err))
	}
	if made := p.made(); made != "" {
		t.Errorf("closed, the session leaves %s", made)
	}
	// It comes back, since all that it had lies in the folder.
	w = w.service.open("", "divided")
	if got := w.sh("cat poem.txt"); got != "one two\nthree\nfour\n" {
		t.Errorf("resumed, the shell sees %q", got)
	}
}

// Each tool is listed once, with the profile that it runs in.
func dividedTools(w *work) {
	w.Helper()
	listed, err := w.ToolList(w.ctx(), protocol.SessionParams{SessionID: w.session.ID})
	if err != nil {
		w.Fatal(explain(err))
	}
	profiles := map[string]string{}
	for _, tool := range listed.Tools {
		if profiles[tool.Name] != "" {
			w.Errorf("%s is listed twice", tool.Name)
		}
		profiles[tool.Name] = tool.Profile
	}
	for name, want := range map[string]string{
		"read_file": "local", "grep": "local", "git": "local", "present_artifact": "local", "bash": "box", "process": "box", "word_count": "pure",
	} {
		if profiles[name] != want {
			w.Errorf("%s is listed from %q, want %s", name, profiles[name], want)
		}
	}
}

// The folder has a path of its own in the container: whoever takes that for a path
// here is told how to write it.
func dividedPaths(w *work) {
	w.Helper()
	e := w.refused(protocol.KindPathOutsideRoot, "read_file", members{"path": "/workspace/poem.txt"})
	if e.Data.Profile != "local" || !strings.Contains(e.Data.Hint, "as poem.txt") {
		w.Errorf("told %+v", e.Data)
	}
}

// Two file systems never pretend to be one.
func testTwoWorlds(t *testing.T, image string) {
	p := newPlace(t, members{})
	p.divided(image)
	raw, err := os.ReadFile(p.config())
	if err == nil {
		err = os.WriteFile(p.config(), []byte(strings.Replace(string(raw), `"shell.*":"box"`, `"shell.*":"away"`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.serve().tryOpen("", "two")
	e := p.kind(protocol.KindConfigInvalid, "a shell elsewhere", err)
	for _, word := range []string{"file.read_file", p.folder, "shell.bash", `"away"`} {
		if !strings.Contains(e.Message, word) {
			t.Errorf("%q says nothing of %s", e.Message, word)
		}
	}
	if made := p.made(); made != "" {
		t.Errorf("there is %s", made)
	}
}
