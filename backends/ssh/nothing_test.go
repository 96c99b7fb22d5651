package ssh

import (
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// What cannot be reached is known to hold nothing of a new environment. What was sent
// there may have been done, whatever came back.
func TestNothingMade(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*backends.Binding)
		nothing bool
	}{
		"nobody listens":     {func(b *backends.Binding) { b.Profile.Port = sshtest.Closed }, true},
		"the worker is none": {func(b *backends.Binding) { b.Profile.Worker = "/bin/false" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			binding := newBox(t, sshtest.Options{}).newBinding(t)
			c.change(&binding)
			_, err := newBackend(t).Open(testContext(t), binding, nil)
			if tool.KindOf(err) != tool.BackendUnavailable || backends.MadeNothing(err) != c.nothing {
				t.Errorf("%v; nothing made: %t", err, backends.MadeNothing(err))
			}
		})
	}
}
