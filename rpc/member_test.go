package rpc

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// TestMembers holds for every method: a bad parameter is named as the method
// calls it, and whatever else an error's path is, a file or another room's word,
// never comes out as the member's name.
func TestMembers(t *testing.T) {
	for _, m := range protocol.Methods() {
		if m.Direction != protocol.ToServer || m.Notification {
			continue
		}
		var params reflect.Type
		if m.Params != nil {
			params = reflect.TypeOf(m.Params)
			for _, member := range membersOf(params) {
				if got := memberOf(m.Name, member); got != member {
					t.Errorf("%s: the member %s is named %q", m.Name, member, got)
				}
			}
		}
		for _, foreign := range []string{
			"", ".", "..", "/etc/passwd", "src/main.go", "a.txt", "A", "0", "bytes:%ff", "a\x00b", "permission_mode", "operation_id", "environment",
			"actor_kind", "id", "input", "OffsetBytes", "options.Encoding", "call.arguments", "stdin", "sessionId.more", strings.Repeat("x", 5000),
		} {
			got := memberOf(m.Name, foreign)
			if got != "" && !hasMember(params, got) {
				t.Errorf("%s: %.40q is told as %.40q, which is no member", m.Name, foreign, got)
			}
			if told := toldPath(t, m.Name, tool.Errorf(tool.InvalidParams, "bad").WithPath(foreign)); told != got {
				t.Errorf("%s: %.40q becomes %q", m.Name, foreign, told)
			}
		}
	}
	for _, row := range []struct{ method, path, want string }{
		{protocol.MethodFileStat, "/w/a.txt", "path"},
		{protocol.MethodFileWrite, "data", "data"},
		{protocol.MethodArtifactPublish, "a.txt", "path"},
		{protocol.MethodProcessStart, "permission_mode", "permissionMode"},
		{protocol.MethodProcessStart, "operation_id", "operationId"},
		{protocol.MethodProcessStart, "environment", "env"},
		{protocol.MethodProcessStart, "/bin/none", ""},
		{protocol.MethodProcessWrite, "input", "data"},
		{protocol.MethodProcessRead, "OffsetBytes", "offset"},
		{protocol.MethodProcessGet, "id", "processId"},
		{protocol.MethodArtifactRead, "id", "id"},
		{protocol.MethodToolCall, "cwd", "arguments.cwd"},
		{protocol.MethodToolCall, "/w/a.txt", "arguments"},
		{protocol.MethodToolCall, "permission_mode", "permissionMode"},
		{protocol.MethodToolCall, "call.arguments", "arguments"},
		{protocol.MethodSessionOpen, "labels.x", "labels.x"},
		{protocol.MethodSessionOpen, "constraints.timeuot", "constraints.timeuot"},
		{protocol.MethodSessionOpen, "constraints./etc", ""},
		{protocol.MethodSessionGet, "/w", ""},
	} {
		if got := memberOf(row.method, row.path); got != row.want {
			t.Errorf("%s: %q is named %q, not %q", row.method, row.path, got, row.want)
		}
	}
	// Every other kind keeps what it is about.
	if told := toldPath(t, protocol.MethodFileStat, tool.Errorf(tool.PathOutsideRoot, "no").WithPath("../x")); told != "../x" {
		t.Errorf("a path outside of the root becomes %q", told)
	}
}

// toldPath is the path in the answer to a request of the method that failed.
func toldPath(t *testing.T, method string, err error) string {
	t.Helper()
	wire, ok := errors.AsType[*jsonrpc2.Error](wireError(err, &request{server: new(server), name: method}))
	if !ok {
		t.Fatalf("%v has no answer", err)
	}
	return protocol.ParseErrorData(json.RawMessage(wire.Data)).Path
}

// membersOf are the members of a struct, with those of structs in it.
func membersOf(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, name)
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			for _, m := range membersOf(inner) {
				if m != "" && m != "-" {
					all = append(all, name+"."+m)
				}
			}
		}
	}
	return all
}
