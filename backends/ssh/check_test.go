//go:build linux

package ssh

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A check goes as far as it comes, says at which step it ended and what to do,
// and leaves nothing but the worker.
func TestCheck(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	known := box.proxy.KnownHosts(box.server)
	_, deadPort, err := net.SplitHostPort(box.proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	box.write(t, "file", "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(t.TempDir(), "worker")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s '%s' \"$@\"\n", self, withoutLandlock, far(t))
	if err := os.WriteFile(older, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(p *profile.Profile)
		before func()
		// ends is the step that fails, and says what it tells; empty: none.
		ends, says string
	}{
		{name: "good"},
		{name: "unconfined", change: func(p *profile.Profile) { p.WritablePaths = []string{"/"} }},
		{name: "unknown host key", before: func() { box.client.SetKnownHosts(t, "") }, ends: "connection", says: "host key"},
		{name: "nobody there", before: func() {
			box.client.SetKnownHosts(t, known)
			box.proxy.Refuse(true)
		}, ends: "connection", says: deadPort},
		{name: "no workspace", before: func() { box.proxy.Refuse(false) },
			change: func(p *profile.Profile) { p.Workspace = filepath.Join(box.home, "file", "below") }, ends: "workspace", says: "not a directory"},
		{name: "no Landlock", change: func(p *profile.Profile) { p.Worker = older }, ends: "confinement", says: "needs Landlock ABI 3"},
		{name: "no Landlock, unconfined", change: func(p *profile.Profile) { p.Worker, p.PermissionMode = older, tool.Unconfined }},
		{name: "no such worker", change: func(p *profile.Profile) { p.Worker = "/nonexistent" }, ends: "worker", says: "/nonexistent"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.before != nil {
				test.before()
			}
			p := box.profile()
			if test.change != nil {
				test.change(&p)
			}
			health := newBackend(t).Check(t.Context(), p)
			if health.OK != (test.ends == "") || len(health.Checks) == 0 || health.Duration <= 0 {
				t.Fatalf("%+v", health)
			}
			last := health.Checks[len(health.Checks)-1]
			if test.ends != "" && (last.Name != test.ends || last.OK || last.Hint == "" || !strings.Contains(last.Detail, test.says)) {
				t.Errorf("the last step is %+v", last)
			}
			if test.ends == "" {
				names := ""
				for _, c := range health.Checks {
					names += c.Name + " "
				}
				if names != "route connection platform worker workspace confinement " {
					t.Errorf("the steps are %s", names)
				}
			}
			if exists(box.parent) {
				t.Error("the directory of environments was made and is left")
			}
		})
	}
}
