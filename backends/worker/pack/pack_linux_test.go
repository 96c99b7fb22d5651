//go:build linux

package pack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a pack whose tools do what their names say.
const script = `#!/bin/sh
read -r request
name=${request#*'"name":"'} name=${name%%'"'*}
case $request in
*'"action":"list"'*)
	echo '{"tools":[{"name":"echo","description":"Says what it was given."},{"name":"write","description":"Writes."},
		{"name":"fail","description":"Fails."},{"name":"crash","description":"Crashes."},{"name":"nonsense","description":"Says nonsense."},
		{"name":"much","description":"Says much."},{"name":"sleep","description":"Sleeps."},{"name":"leave","description":"Leaves somebody behind."}]}'
	exit ;;
esac
case $name in
echo) printf '{"ok":true,"result":%s}' "${request#*'"arguments":'}" | sed 's/}$//;s/}}$/}/'; echo "}" ;;
write) if echo x >"$PACK_TARGET"; then echo '{"ok":true}'; else echo '{"ok":false,"error":"not written"}'; fi ;;
fail) echo '{"ok":false,"error":"no such thing"}'; exit 1 ;;
crash) echo "it broke" >&2; exit 3 ;;
nonsense) echo "hello" ;;
much) head -c 100000 /dev/zero | tr '\0' a ;;
sleep) sleep 1000 & echo $! >"$PACK_TARGET"; wait ;;
leave) sleep 1000 >/dev/null 2>&1 & echo $! >"$PACK_TARGET"; echo '{"ok":true,"result":"left"}' ;;
esac
`

// bench is a set with a process manager.
type bench struct {
	*Set
	t      *testing.T
	root   string
	dir    string
	target string // a file that the tools write
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, root: t.TempDir(), dir: filepath.Join(t.TempDir(), "packs")}
	b.target = filepath.Join(b.root, "target")
	m, err := process.NewManager(process.Options{
		StateDir: t.TempDir(), Session: "s1", Root: b.root, Shell: "/bin/sh",
		Env:         []string{"PATH=" + os.Getenv("PATH"), "PACK_TARGET=" + b.target},
		DefaultMode: tool.Standard, Ceiling: tool.Unconfined,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	b.Set = New(Options{Dir: b.dir, Runner: m})
	return b
}

// from is a pack with the source, and its text.
func from(name, source string, command ...string) (tool.Pack, []byte) {
	sum := sha256.Sum256([]byte(source))
	return tool.Pack{Name: name, Command: command, SHA256: hex.EncodeToString(sum[:])}, []byte(source)
}

// add adds the script as a pack.
func (b *bench) add() tool.Pack {
	b.t.Helper()
	p, source := from("demo", script, "demo")
	tools, err := b.Add(b.t.Context(), p, source)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(tools) != 8 || tools[0].Group != tool.GroupPlugins || string(tools[0].InputSchema) != `{"type":"object"}` {
		b.t.Fatalf("tools %+v", tools)
	}
	return p
}

func (b *bench) text(r tool.Request) (string, bool) {
	b.t.Helper()
	res, err := b.Call(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(res.Content) == 0 {
		return "", res.IsError
	}
	return res.Content[0].String(), res.IsError
}

func TestCall(t *testing.T) {
	b := newBench(t)
	b.add()
	for _, test := range []struct {
		name, arguments string
		most            int64
		mode            tool.Mode
		actor           tool.Actor
		want            string
		failed          bool
	}{
		{name: "echo", arguments: `{"a":"ü"}`, want: `{"a":"ü"}`},
		{name: "write", want: ""},
		{name: "write", mode: tool.ReadOnly, want: "not written", failed: true},
		{name: "write", actor: tool.Actor{ID: "side", Kind: tool.ActorSideChat}, want: "not written", failed: true},
		{name: "fail", want: "no such thing", failed: true},
		{name: "crash", want: "crash failed: it ended with exit code 3 and said: it broke", failed: true},
		{name: "nonsense", want: `nonsense cannot be understood: it answered run with what is not one JSON value`, failed: true},
		{name: "much", most: 1000, want: "much answered more than the 1000 bytes", failed: true},
	} {
		t.Run(test.name+string(test.mode)+string(test.actor.Kind), func(t *testing.T) {
			b.t = t
			text, failed := b.text(tool.Request{Name: test.name, Arguments: json.RawMessage(test.arguments), Mode: test.mode, Actor: test.actor, MaxOutputBytes: test.most})
			if !strings.HasPrefix(text, test.want) || failed != test.failed {
				t.Errorf("%q, failed %t", text, failed)
			}
		})
	}
	b.t = t
	if _, err := b.Call(t.Context(), tool.Request{Name: "unknown"}); tool.KindOf(err) != tool.ToolNotFound {
		t.Error(err)
	}
	if _, err := b.Call(t.Context(), tool.Request{Name: "echo", Arguments: json.RawMessage("[]")}); tool.KindOf(err) != tool.InvalidParams {
		t.Error(err)
	}
	if text, failed := b.text(tool.Request{Name: "leave"}); text != "left" || failed {
		t.Errorf("%q", text)
	}
	b.gone()
}

// gone checks that the process whose pid is in the target runs no more.
func (b *bench) gone() {
	b.t.Helper()
	pid, err := os.ReadFile(b.target)
	if err != nil {
		b.t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err == nil && strings.Contains(string(stat), "(sleep)") && !strings.Contains(string(stat), ") Z ") { // dead, and not yet reaped by whoever does
		b.t.Errorf("it still runs: %s", stat)
	}
}

// The end of a call ends all that its pack has started.
func TestCallCancelled(t *testing.T) {
	b := newBench(t)
	b.add()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := b.Call(ctx, tool.Request{Name: "sleep"})
		done <- err
	}()
	for {
		if _, err := os.Stat(b.target); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatal("it ended by itself:", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; tool.KindOf(err) != tool.Cancelled {
		t.Errorf("%v", err)
	}
	b.gone()
}

func TestSource(t *testing.T) {
	b := newBench(t)
	p, source := from("demo", script, "demo")
	if _, err := b.Add(t.Context(), p, nil); !errors.Is(err, ErrSource) {
		t.Fatalf("without its source: %v", err)
	}
	if _, err := b.Add(t.Context(), p, []byte(script+"#")); tool.KindOf(err) != tool.InvalidParams {
		t.Fatalf("another source: %v", err)
	}
	if _, err := b.Add(t.Context(), p, source); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.dir, p.SHA256, "demo")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o500 {
		t.Fatalf("%v, %v", info, err)
	}
	// It is there for whoever asks next, such as after this worker.
	again := New(b.o)
	if tools, err := again.Add(t.Context(), p, nil); err != nil || len(tools) != 8 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	// What was changed in the environment is not run.
	if err := errors.Join(os.Chmod(file, 0o700), os.WriteFile(file, []byte("#!/bin/sh\necho '{\"ok\":true}'\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Call(t.Context(), tool.Request{Name: "echo"}); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("a changed source: %+v, %v", r, err)
	}
	if err := errors.Join(os.Remove(file), os.Symlink("/bin/true", file)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Call(t.Context(), tool.Request{Name: "echo"}); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("a link in its place: %v", err)
	}
}

// An interpreter is told where the source is.
func TestSourceMark(t *testing.T) {
	b := newBench(t)
	p, source := from("demo", strings.TrimPrefix(script, "#!/bin/sh\n"), "sh", tool.SourceMark)
	if tools, err := b.Add(t.Context(), p, source); err != nil || len(tools) != 8 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	if text, failed := b.text(tool.Request{Name: "echo", Arguments: json.RawMessage(`{"a":1}`)}); text != `{"a":1}` || failed {
		t.Errorf("%q", text)
	}
}

func TestAdd(t *testing.T) {
	b := newBench(t)
	p := b.add()
	if tools, err := b.Add(t.Context(), p, nil); err != nil || len(tools) != 8 {
		t.Errorf("again: %d tools, %v", len(tools), err)
	}
	other := p
	other.Command = []string{"demo", "other"}
	if _, err := b.Add(t.Context(), other, nil); tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), "another pack") {
		t.Errorf("another command: %v", err)
	}
	says := func(answer string) tool.Pack {
		return tool.Pack{Name: "p" + fmt.Sprint(len(answer)), Command: []string{"sh", "-c", "cat >/dev/null; printf '%s' '" + answer + "'"}}
	}
	for name, test := range map[string]struct {
		pack tool.Pack
		want string
	}{
		"no name":        {tool.Pack{Command: []string{"true"}}, "needs a name"},
		"no command":     {tool.Pack{Name: "p"}, "names no program"},
		"no hash":        {tool.Pack{Name: "p", Command: []string{"p"}, SHA256: "abc"}, "not a SHA-256"},
		"no program":     {tool.Pack{Name: "p", Command: []string{"no-such-program"}}, `the pack "p": this environment has no program "no-such-program"`},
		"failing":        {tool.Pack{Name: "p", Command: []string{"sh", "-c", "echo oh >&2; exit 2"}}, "exit code 2 and said: oh"},
		"silent":         {tool.Pack{Name: "p", Command: []string{"true"}}, "it answered list with nothing"},
		"without a list": {says(`{"ok":true}`), `without the member "tools"`},
		"the same tool":  {says(`{"tools":[{"name":"echo","description":"x"}]}`), `"demo" and`},
		"too much":       {tool.Pack{Name: "p", Command: []string{"sh", "-c", "head -c 3000000 /dev/zero"}}, "may answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := b.Add(t.Context(), test.pack, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	var refused error
	for i := range MaxListed/(1<<20) + 2 { // each of nearly 1 MiB
		line := fmt.Sprintf(`cat >/dev/null; s=$(head -c 65000 /dev/zero | tr '\0' s); printf '{"tools":['; for n in a b c d e f g h i j k l m n o; do printf '{"name":"%%s%d","description":"d","inputSchema":{"type":"object","title":"%%s"}},' $n $s; done; printf '{"name":"z%d","description":"d"}]}'`, i, i)
		if _, refused = b.Add(t.Context(), tool.Pack{Name: fmt.Sprint("big", i), Command: []string{"sh", "-c", line}}, nil); refused != nil {
			break
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "take") {
		t.Errorf("descriptions without end: %v", refused)
	}
}

// What a pack hides is left out of the list.
func TestBeside(t *testing.T) {
	b := newBench(t)
	b.add()
	names := ""
	for _, d := range b.Beside([]tool.Description{{Name: "bash"}, {Name: "echo", Group: tool.GroupFile}}) {
		names += d.Name + " "
		if d.Name == "echo" && d.Group != tool.GroupPlugins {
			t.Error("a built-in tool was not hidden")
		}
	}
	if names != "bash crash echo fail leave much nonsense sleep write " {
		t.Errorf("tools %s", names)
	}
}
