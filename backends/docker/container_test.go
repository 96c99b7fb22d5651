package docker

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

func TestUser(t *testing.T) {
	b := New(Options{})
	b.caller = "1000:1001"
	near := endpoint{Host: "unix:///var/run/docker.sock"}
	far := endpoint{Host: "tcp://box:2376"}
	mounted := profile.Profile{HostWorkspace: "/folder"}
	tests := []struct {
		name     string
		profile  profile.Profile
		endpoint endpoint
		daemon   daemonInfo
		want     string
	}{
		{"the image's", profile.Profile{}, near, daemonInfo{}, ""},
		{"the profile's", profile.Profile{User: "app", HostWorkspace: "/folder"}, near, daemonInfo{}, "app"},
		{"the caller on a bind mount", mounted, near, daemonInfo{}, "1000:1001"},
		{"the caller of a rootless daemon", mounted, near, daemonInfo{Rootless: true}, "0:0"},
		{"a bind mount of another machine", mounted, far, daemonInfo{}, ""},
	}
	for _, test := range tests {
		if got := b.user(test.profile, test.daemon, test.endpoint); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestNetworkAndTmp(t *testing.T) {
	b := New(Options{})
	binding := backends.Binding{Environment: "caisson-x"}
	spec := func(change func(*profile.Profile)) containerSpec {
		p := profile.Profile{Workspace: "/workspace", Network: "none", TmpfsNoexec: true, TmpfsSize: 1 << 20}
		change(&p)
		binding.Profile = p
		return b.spec(binding, daemonInfo{}, endpoint{}, nil, "")
	}
	for network, want := range map[string]string{"none": "none", "": "none", "enabled": "bridge", "host": "host", "typo": "none"} {
		if got := spec(func(p *profile.Profile) { p.Network = network }).Network; got != want {
			t.Errorf("network %q gives %q, want %q", network, got, want)
		}
	}
	if got := spec(func(p *profile.Profile) { p.TmpfsNoexec = false }).Tmpfs["/tmp"]; got != "rw,nosuid,nodev,exec,mode=1777,size=1048576" {
		t.Errorf("/tmp is %q", got)
	}
	if got := spec(func(p *profile.Profile) { p.Mounts = []profile.Mount{{Source: "/a", Target: "/tmp/"}} }).Tmpfs; len(got) > 0 {
		t.Errorf("a mount on /tmp is hidden by %q", got)
	}
}

func TestRefuseLimits(t *testing.T) {
	var whole, none daemonInfo
	whole.Limits.Memory, whole.Limits.CPU, whole.Limits.Pids = true, true, true
	tests := []struct {
		name    string
		profile profile.Profile
		daemon  daemonInfo
		fails   string
		reports string
	}{
		{"all", profile.Profile{Memory: 1, CPUs: 1, PidsLimit: 1}, whole, "", ""},
		{"memory", profile.Profile{Memory: 1}, none, "memory", ""},
		{"cpus", profile.Profile{CPUs: 1}, none, "cpus", ""},
		{"processes", profile.Profile{PidsLimit: 512}, none, "", "pids_limit has no effect"},
	}
	for _, test := range tests {
		var said string
		err := refuseLimits(test.profile, test.daemon, func(step string) { said = step })
		if (err == nil) != (test.fails == "") || err != nil && (tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), test.fails)) {
			t.Errorf("%s: %v", test.name, err)
		}
		if !strings.Contains(said, test.reports) {
			t.Errorf("%s: reported %q", test.name, said)
		}
	}
}

func TestCheckPlatform(t *testing.T) {
	amd := platform{OS: "linux", Arch: "amd64"}
	arm := platform{OS: "linux", Arch: "arm64", Variant: "v8"}
	tests := []struct {
		name         string
		daemon, want platform
		image        platform
		fails        string
		worker       string
	}{
		{name: "the same", daemon: amd, image: amd, worker: "amd64"},
		{name: "a variant", daemon: platform{OS: "linux", Arch: "arm64"}, image: arm, worker: "arm64"},
		{name: "32 bits on 64", daemon: amd, image: platform{OS: "linux", Arch: "386"}, worker: "amd64"},
		{name: "another CPU", daemon: amd, image: arm, fails: "is for linux/arm64/v8"},
		{name: "an emulated CPU", daemon: amd, image: arm, want: platform{OS: "linux", Arch: "arm64"}, worker: "arm64"},
		{name: "not what was asked for", daemon: amd, image: amd, want: arm, fails: "wants linux/arm64/v8"},
		{name: "another system", daemon: amd, image: platform{OS: "windows", Arch: "amd64"}, fails: "only Linux"},
	}
	for _, test := range tests {
		d, i := daemonInfo{Platform: test.daemon}, imageInfo{Platform: test.image}
		err := checkPlatform(profile.Profile{Image: "i"}, d, test.want, i)
		if (err == nil) != (test.fails == "") || err != nil && (!strings.Contains(err.Error(), test.fails) || tool.HintOf(err) == "") {
			t.Errorf("%s: %v (%s)", test.name, err, tool.HintOf(err))
		}
		if err == nil && workerArch(d, i) != test.worker {
			t.Errorf("%s: the worker is for %s, want %s", test.name, workerArch(d, i), test.worker)
		}
	}
}
