package backendtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

func packTests() []test {
	return []test{
		{name: "Packs", needs: needPacks | needShell, closed: true, run: testPacks},
		{name: "PacksOfTheEnvironment", needs: needPacks | needShell, closed: true, run: testPacksOfTheEnvironment},
		{name: "PackConfinement", needs: needPacks | needShell | needLandlock, closed: true, run: testPackConfinement},
		{name: "PacksThatFail", needs: needPacks | needShell, closed: true, run: testPacksThatFail},
	}
}

// packScript has three tools: one that says what it was given, one that writes a
// file of the workspace, and one in the place of a built-in.
const packScript = `#!/bin/sh
read -r request
case $request in
*'"action":"list"'*)
	echo '{"tools":[{"name":"pack_echo","description":"Says what it was given.","annotations":{"readOnlyHint":true}},
		{"name":"pack_write","description":"Writes the file made."},
		{"name":"glob","description":"Stands for the built-in tool.","inputSchema":{"type":"object","required":["x"]}}]}' ;;
*'"name":"pack_echo"'*) printf '{"ok":true,"result":{"said":%s,"secret":"%s"}}\n' "$request" "$` + secretName + `" ;;
*'"name":"pack_write"'*) if echo made >made; then echo '{"ok":true,"result":"done"}'; else echo '{"ok":false,"error":"not written"}'; fi ;;
*'"name":"glob"'*) echo '{"ok":true,"result":"of the pack"}' ;;
esac
`

// packOf is a pack whose source is on the host.
func packOf(w *world, name, source string) tool.Pack {
	w.Helper()
	file := filepath.Join(w.TempDir(), "source")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		w.Fatal(err)
	}
	sum := sha256.Sum256([]byte(source))
	return tool.Pack{Name: name, Command: []string{name}, SHA256: hex.EncodeToString(sum[:]), Source: file}
}

// describes checks that the environment offers the pack's tools, once each.
func (w *world) describes() {
	w.Helper()
	all, err := w.env.Tools(w.Context())
	if err != nil {
		w.Fatal(describe(err))
	}
	count := map[string]int{}
	for _, d := range all {
		count[d.Name]++
		switch d.Name {
		case "pack_echo":
			if d.Group != tool.GroupPlugins || !d.Annotations.ReadOnly || string(d.InputSchema) != `{"type":"object"}` {
				w.Errorf("it is described as %+v", d)
			}
		case "glob":
			if d.Group != tool.GroupPlugins || !strings.Contains(string(d.InputSchema), "required") {
				w.Errorf("the built-in tool was not hidden: %+v", d)
			}
		}
	}
	for _, name := range []string{"pack_echo", "pack_write", "glob", "read_file", "grep"} {
		if count[name] != 1 {
			w.Errorf("%s stands %d times in the list", name, count[name])
		}
	}
	if !slices.IsSortedFunc(all, func(a, b tool.Description) int { return strings.Compare(a.Name, b.Name) }) {
		w.Error("the list is not sorted")
	}
}

func testPacks(w *world) {
	w.binding.Packs = []tool.Pack{packOf(w, "demo", packScript)}
	w.open()
	w.describes()
	r := w.call("pack_echo", args{"a": "ü\n"})
	var echo struct {
		Said struct {
			Action, Name string
			Arguments    map[string]string
		}
		Secret string
	}
	if err := json.Unmarshal(r.StructuredContent, &echo); err != nil {
		w.Fatal(err)
	}
	if echo.Said.Action != "run" || echo.Said.Name != "pack_echo" || echo.Said.Arguments["a"] != "ü\n" || echo.Secret != secret {
		w.Errorf("the pack saw %+v", echo)
	}
	if got := text(w.call("glob", args{"x": 1})); got != "of the pack" {
		w.Errorf("glob says %q", got)
	}
	w.call("pack_write", args{})
	w.holds("made", []byte("made\n"))
	if w.h.Lacks.Reattach != "" {
		return
	}
	// A service that comes later finds them as they were, without the source.
	w.binding.Packs[0].Source = filepath.Join(w.TempDir(), "gone")
	if err := w.env.Detach(w.Context()); err != nil {
		w.Fatal(describe(err))
	}
	env, err := w.tryOpen(w.h.Backend(w.T))
	if err != nil {
		w.env = nil
		w.Fatal(describe(err))
	}
	w.use(env)
	w.describes()
	if got := text(w.call("glob", args{"x": 1})); got != "of the pack" {
		w.Errorf("afterwards glob says %q", got)
	}
}

// A pack may be in the environment already.
func testPacksOfTheEnvironment(w *world) {
	w.binding.Packs = []tool.Pack{{Name: "here", Command: []string{"sh", "-c", strings.TrimPrefix(packScript, "#!/bin/sh\n")}}}
	w.open()
	w.describes()
	if got := text(w.call("glob", args{"x": 1})); got != "of the pack" {
		w.Errorf("glob says %q", got)
	}
}

func testPackConfinement(w *world) {
	w.binding.Packs = []tool.Pack{packOf(w, "demo", packScript)}
	w.open()
	for _, r := range []tool.Request{
		{Name: "pack_write", Mode: tool.ReadOnly},
		{Name: "pack_write", Actor: tool.Actor{ID: "side", Kind: tool.ActorSideChat}},
	} {
		res, err := w.request(w.Context(), r, args{})
		if err != nil || !res.IsError || text(res) != "not written" {
			w.Errorf("a write in read_only: %s, %v", text(res), describe(err))
		}
	}
	if w.exists("made") {
		w.Error("it was written")
	}
	_, err := w.request(w.Context(), tool.Request{Name: "pack_write", Mode: tool.Unconfined}, args{})
	w.refusal("a mode above the ceiling", err, "ceiling", tool.Denied)
}

// What cannot be listed is told by name, and leaves nothing: least of all a
// built-in tool in its place.
func testPacksThatFail(w *world) {
	for _, p := range []tool.Pack{
		{Name: "nowhere", Command: []string{"no-such-program"}},
		{Name: "broken", Command: []string{"sh", "-c", "echo it broke >&2; exit 1"}},
		packOf(w, "silent", "#!/bin/sh\n"),
	} {
		w.binding.Packs = []tool.Pack{p}
		env, err := w.tryOpen(w.backend)
		if err == nil {
			w.use(env)
			w.Fatalf("the pack %s cannot be listed, and the environment opened", p.Name)
		}
		w.refusal("the pack "+p.Name, err, p.Name, tool.Unsupported)
		ctx := w.Context()
		w.gone(ctx)
	}
}

// lacksPacks checks how an environment answers that can have none.
func lacksPacks(w *world) {
	w.binding.Packs = []tool.Pack{{Name: "demo", Command: []string{"true"}}}
	env, err := w.tryOpen(w.backend)
	if err == nil {
		err = errors.Join(env.Shutdown(w.Context()), env.Detach(w.Context()))
		w.Fatal("it opened with a pack that it cannot have", err)
	}
	w.refusal("open with a pack", err, "demo", tool.Unsupported)
}
