package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestJobThereAndBack: a request and a result are at the other end what they were
// at this one.
func TestJobThereAndBack(t *testing.T) {
	fuel := uint64(7)
	for _, want := range []tool.JobRequest{
		{Argv: []string{"a", ""}, Actor: tool.Actor{ID: "s"}},
		{
			ID: "j", Script: &tool.JobScript{Interpreter: "sh", Source: "echo \xff"},
			Inputs: []tool.JobInput{{Path: "a", Data: []byte("1\x00")}, {Path: "b/c", Data: []byte{}}, {Path: "d", Data: []byte("3")}},
			CWD:    "d", Stdin: []byte("in"), Environment: map[string]string{"A": "b"},
			Actor: tool.Actor{ID: "x", Kind: tool.ActorSideChat}, Mode: tool.ReadOnly,
			Timeout: time.Second, CPUTime: 2 * time.Millisecond, Memory: 3, MaxOutputBytes: 4, Collect: []string{"*"},
		},
	} {
		data, body := NewJob(want)
		data.Actor, data.ActorKind, data.PermissionMode = want.Actor.ID, want.Actor.Kind, want.Mode
		got, err := again(t, data).Request(body)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Stdin) == 0 {
			got.Stdin = want.Stdin
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nbecame %+v", want, got)
		}
	}
	if data, _ := NewJob(tool.JobRequest{Timeout: 1, CPUTime: 1}); data.TimeoutMS != 1 || data.CPUTimeMS != 1 {
		t.Errorf("a short limit became none: %+v", data)
	}
	want := tool.JobResult{
		Stdout: []byte("out\xff"), Stderr: []byte("err"), ExitCode: -1, Signal: "SIGKILL", TimedOut: true, Truncated: true,
		Files: []tool.JobFile{{Path: "p", Size: 1, Token: "t"}}, FilesDropped: 2, FuelRemaining: &fuel,
	}
	data, body := NewJobDone(want)
	got, err := again(t, data).Result(body)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nbecame %+v, %v", want, got, err)
	}
}

// again is a value after its way as JSON.
func again[T any](t *testing.T, v T) *T {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	to := new(T)
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestJobsThatAreNone: what does not add up is refused before anything is done.
func TestJobsThatAreNone(t *testing.T) {
	for _, c := range []struct{ data, body, want string }{
		{`{"argv":["a"]}`, "", "actor"},
		{`{"argv":["a"],"actor":"s","stdin_bytes":3}`, "ab", "body"},
		{`{"argv":["a"],"actor":"s","stdin_bytes":1}`, "ab", "body"},
		{`{"argv":["a"],"actor":"s","stdin_bytes":-1}`, "", "body"},
		{`{"argv":["a"],"actor":"s","inputs":[{"path":"p","bytes":9223372036854775807}],"stdin_bytes":1}`, "a", "body"},
		{`{"actor":"s"}`, "", "argument list or a script"},
		{`{"argv":["a"],"actor":"s","inputs":[{"path":"../p","bytes":0}]}`, "", "leads out"},
		{`{"argv":["a"],"actor":"s","memory_bytes":-1}`, "", "negative"},
	} {
		var j Job
		if err := json.Unmarshal([]byte(c.data), &j); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Request([]byte(c.body)); tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.data, err)
		}
	}
	for _, data := range []string{
		`{"stdout_bytes":2}`, `{"stdout_bytes":-1}`, `{"files":[{"path":"p","size":1}]}`, `{"files":[{"token":"t","size":1}]}`,
		`{"files":[{"token":"t","path":"p","size":-1}]}`,
	} {
		var d JobDone
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Result([]byte("a")); tool.KindOf(err) != tool.ProtocolMismatch {
			t.Errorf("%s: %v", data, err)
		}
	}
}
