package docker

import (
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

var _ backends.Locator = (*Backend)(nil)

func TestMachine(t *testing.T) {
	for _, test := range []struct{ host, env, want string }{
		{"", "", ""},
		{"unix:///run/docker.sock", "", ""},
		{"unix:///run/docker.sock", "ssh://there", ""},
		{"ssh://there", "", "ssh://there"},
		{"tcp://there:2376", "", "tcp://there:2376"},
		{"", "ssh://there", "ssh://there"},
	} {
		b := &Backend{chooser: chooser{getenv: func(name string) string { return map[string]string{"DOCKER_HOST": test.env}[name] }}}
		got, err := b.Machine(profile.Profile{DockerHost: test.host})
		if err != nil || got != test.want {
			t.Errorf("docker_host %q, DOCKER_HOST %q: %q, %v, want %q", test.host, test.env, got, err, test.want)
		}
	}
	b := &Backend{chooser: chooser{getenv: func(string) string { return "" }}}
	if _, err := b.Machine(profile.Profile{DockerHost: "nonsense"}); err == nil {
		t.Error("nonsense is a machine")
	}
}
