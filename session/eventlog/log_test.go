package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is a log on a file of the test's own.
func start(t *testing.T, o Options) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	l, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return l, path
}

// lines are those of a file, each a JSON object.
func lines(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, v)
	}
	return all
}

func end(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLog(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	l, path := start(t, Options{Now: func() time.Time { return at }})
	code := 7
	x := session.Execution{
		SessionID: "s1", CallID: "c1", RunID: "r1", NodeName: "n1", Tool: "bash", Profile: "box", Backend: "docker",
		Actor: tool.Actor{ID: "s1", Kind: tool.ActorMain}, Duration: 1500 * time.Millisecond,
	}
	var sink session.Sink = l
	sink.SessionChanged(session.Session{ID: "s1", Profile: "box", Backend: "docker", State: session.StateReady, EnvironmentID: "caisson-1", Workspace: "file:///w"})
	sink.ExecutionStarted(x)
	sink.ExecutionCompleted(x)
	x.Err = tool.Errorf(tool.Denied, "no")
	sink.ExecutionFailed(x)
	sink.Process(session.ProcessEvent{Type: "exited", Process: session.Process{
		ID: "p1", SessionID: "s1", Command: "curl -H hush", Argv: []string{"hush"}, Label: "hush", CWD: "hush", ExitCode: &code, EndedAt: at,
	}})
	sink.ArtifactPublished(artifacts.Artifact{ID: "sha256:a", SessionID: "s1", Name: "hush", Size: 3}, artifacts.Preview{})
	sink.ConfigChanged(errors.New("bad"))
	end(t, l)

	got := lines(t, path)
	var names []string
	for _, e := range got {
		names = append(names, e["event"].(string))
		if e["time"] != "2030-01-02T03:04:05Z" {
			t.Errorf("time %v", e["time"])
		}
	}
	if fmt.Sprint(names) != "[session/changed execution/started execution/completed execution/failed process/event artifact/published config/changed]" {
		t.Fatalf("events %v", names)
	}
	for i, want := range map[int]string{
		0: `{"environmentId":"caisson-1","state":"ready","workspace":"file:///w"}`,
		3: `{"kind":"denied","message":"no"}`,
	} {
		v := got[i]["session"]
		if v == nil {
			v = got[i]["failure"]
		}
		if raw, _ := json.Marshal(v); string(raw) != want {
			t.Errorf("event %d: %s", i, raw)
		}
	}
	for name, want := range map[string]any{"callId": "c1", "runId": "r1", "nodeName": "n1", "tool": "bash", "profile": "box", "backend": "docker", "durationMs": 1500.0} {
		if got[2][name] != want {
			t.Errorf("%s is %v", name, got[2][name])
		}
	}
	if p := got[4]["process"].(map[string]any); p["exitCode"] != 7.0 || p["id"] != "p1" {
		t.Errorf("process %v", p)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "hush") {
		t.Errorf("what a call was given is in the log: %s", text)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestRedact(t *testing.T) {
	l, path := start(t, Options{Secrets: func() []string { return []string{"s3cr3t-value", "s3cr3t-value-longer", "short"} }})
	for _, message := range []string{
		"it said s3cr3t-value", "it said s3cr3t-value-longer!", "Authorization: Bearer abcdef0123456789", `{"api_key": "abc def"}`,
		"MY_TOKEN=abcdefgh; password='hunter2 hunter'", "curl https://user:hunter22@example.org/", "ghp_abcdefghijklmnop123456", "run --token hunter2222",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nabcdefgh\n-----END OPENSSH PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh",
	} {
		l.ExecutionFailed(session.Execution{Err: errors.New(message)})
	}
	l.ExecutionFailed(session.Execution{Err: errors.New("the command `curl given1` and \"given2 \\\" given3\" were denied")})
	l.ExecutionFailed(session.Execution{Err: errors.New("the module words failed: unreachable; it said: given4 \"\nand `given5")})
	l.ExecutionFailed(session.Execution{Err: errors.New("the pack \"words it said: \" ended with exit code 1 and said: given6 it said: given7")})
	l.ExecutionFailed(session.Execution{Err: tool.Errorf(tool.Internal, "open notes/given8.txt: no such file").WithPath("notes/given8.txt")})
	l.ExecutionFailed(session.Execution{Err: tool.Errorf(tool.Internal, "input given9.csv: no such file").WithPath("inputFiles.given9.csv")})
	l.ExecutionFailed(session.Execution{Err: tool.Errorf(tool.InvalidParams, "the path is missing").WithPath("path")})
	l.ExecutionFailed(session.Execution{Err: tool.Errorf(tool.Denied, "guard.rules[0] denies it").WithPath("guard.rules[0]")})
	l.ExecutionFailed(session.Execution{Err: errors.New("the token of a short sentence stays: /home/u/file:12 not found, exit code 1")})
	end(t, l)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"s3cr3t", "abcdef0123456789", "abc def", "abcdefgh", "hunter", "eyJhbG", "given"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in the log:\n%s", secret, text)
		}
	}
	for _, kept := range []string{"https://user:[redacted]@example.org/", "MY_TOKEN=[redacted]", "the token of a short sentence stays: /home/u/file:12 not found, exit code 1",
		"the module words failed: unreachable; it said: …", "open …: no such file", "input …: no such file", "the path is missing", "guard.rules[0] denies it", `the pack \"…\" ended with exit code 1 and said: …`,
	} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%q is not in the log:\n%s", kept, text)
		}
	}
	for name, want := range map[string]bool{"GITHUB_TOKEN": true, "db_password": true, "PATH": false, "SSH_AUTH_SOCK": false} {
		if SecretName(name) != want {
			t.Errorf("%s is a secret: %t", name, !want)
		}
	}
}

// A reader that is slow slows nobody: what does not fit is counted, in its place.
func TestLost(t *testing.T) {
	gate := make(chan struct{})
	asked := make(chan struct{}, 1)
	l, path := start(t, Options{Secrets: func() []string {
		asked <- struct{}{}
		<-gate
		return nil
	}})
	l.ExecutionFailed(session.Execution{CallID: "first", Err: errors.New("x")})
	<-asked
	const more = 100
	for range maxQueue + more {
		l.ExecutionStarted(session.Execution{CallID: "c"})
	}
	close(gate)
	end(t, l)
	got := lines(t, path)
	lost := 0.0
	for _, e := range got {
		if n, ok := e["lost"].(float64); ok {
			lost += n
		}
	}
	if written := len(got) - 2; lost != more || written != maxQueue {
		t.Errorf("%v were lost and %d written, want %d and %d", lost, written, more, maxQueue)
	}
}

// The file is moved aside when it is large; two services may do that at once.
func TestRotate(t *testing.T) {
	a, path := start(t, Options{MaxBytes: MinMaxBytes})
	b, err := Open(path, Options{MaxBytes: MinMaxBytes})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", maxText)
	for i := range 250 {
		a.ExecutionStarted(session.Execution{CallID: fmt.Sprint("a", i), RunID: long})
		b.ExecutionStarted(session.Execution{CallID: fmt.Sprint("b", i), RunID: long})
	}
	end(t, a)
	end(t, b)
	if n := len(lines(t, path)) + len(lines(t, path+".1")); n != 500 {
		t.Errorf("%d lines in both files", n)
	}
	for _, p := range []string{path, path + ".1"} {
		if info, err := os.Stat(p); err != nil || info.Size() > MinMaxBytes+256<<10 {
			t.Errorf("%s: %d bytes, %v", p, info.Size(), err)
		}
	}
}

// What a service that was killed has begun is ended, not continued.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.ConfigChanged(nil)
	end(t, l)
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "{\"event\":\"torn\n{") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "link"), filepath.Join(dir, "no", "file"), "/dev/null"} {
		if runtime.GOOS == "windows" && strings.HasSuffix(path, "link") {
			continue
		}
		if l, err := Open(path, Options{}); err == nil {
			end(t, l)
			t.Errorf("%s was opened", path)
		} else if strings.HasSuffix(path, "link") && !strings.Contains(err.Error(), "symbolic link, and") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "small"), Options{MaxBytes: 100}); err == nil {
		t.Error("a log of 100 bytes")
	}
}

// A disk that takes nothing is told of once, and what is missing is counted when it
// takes something again.
func TestWriteFails(t *testing.T) {
	var told bytes.Buffer
	l, path := start(t, Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
	end(t, l) // from here on its goroutine's part is ours
	again, err := openFile(path, DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	l.file = again
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	writable := l.file.f
	l.file.f = readOnly
	for range 3 {
		l.batch(event{Event: "x"})
	}
	if n := strings.Count(told.String(), "cannot be written"); n != 1 {
		t.Errorf("it was told %d times: %s", n, &told)
	}
	l.file.f = writable
	l.batch(event{Event: "y"})
	if err := errors.Join(readOnly.Close(), l.file.close()); err != nil {
		t.Fatal(err)
	}
	got := lines(t, path)
	if len(got) != 2 || got[0]["lost"] != 3.0 || got[1]["event"] != "y" {
		t.Errorf("%v", got)
	}
}
