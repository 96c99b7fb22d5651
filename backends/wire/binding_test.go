package wire

import (
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestSameBinding(t *testing.T) {
	first := Initialize{Root: "/r", Session: "s", Identity: "i", Environment: map[string]string{"A": "1"}}
	for name, test := range map[string]struct {
		change  func(in *Initialize)
		differs string
	}{
		"equal":                {func(*Initialize) {}, ""},
		"no environment":       {func(in *Initialize) { in.Environment = nil }, ""},
		"an empty environment": {func(in *Initialize) { in.Environment = map[string]string{} }, "environment"},
		"another variable":     {func(in *Initialize) { in.Environment = map[string]string{"A": "2"} }, "environment"},
		"another root":         {func(in *Initialize) { in.Root = "/x" }, "root"},
		"another session":      {func(in *Initialize) { in.Session = "x" }, "session"},
		"another identity":     {func(in *Initialize) { in.Identity = "" }, "identity"},
		"it must exist by now": {func(in *Initialize) { in.RequireExistingWorkspace = true }, ""},
		"it is to go by now":   {func(in *Initialize) { in.RemoveWorkspaceOnExit = true }, "remove_workspace_on_exit"},
		"the host knows more":  {func(in *Initialize) { in.Capabilities = []string{"x"} }, ""},
		"it offers a socket":   {func(in *Initialize) { in.Socket = &SocketOffer{Path: "s"} }, ""},
	} {
		in := first
		test.change(&in)
		err := first.Same(in, "the worker")
		var e *tool.Error
		if errors.As(err, &e); (err == nil) != (test.differs == "") || err != nil && (e.Kind != tool.Denied || e.Path != test.differs) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must := first
	must.RequireExistingWorkspace = true
	if err := must.Same(first, "the worker"); err == nil {
		t.Error("a workspace that had to exist may be made now")
	}
}
