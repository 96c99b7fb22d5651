package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// writeContext makes a context of the docker CLI as the CLI does.
func writeContext(t *testing.T, config, name, meta string, pems ...string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	write(t, filepath.Join(config, "contexts", "meta", id, "meta.json"), meta)
	for _, pem := range pems {
		write(t, filepath.Join(config, "contexts", "tls", id, "docker", pem), "pem")
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChoose(t *testing.T) {
	config := t.TempDir()
	write(t, filepath.Join(config, "config.json"), `{"auths":{}, "currentContext":"far", "unknown": 1}`)
	writeContext(t, config, "far", `{"Name":"far","Metadata":{},"Endpoints":{"docker":{"Host":"ssh://me@far","SkipTLSVerify":false}}}`)
	writeContext(t, config, "tls", `{"Name":"tls","Endpoints":{"docker":{"Host":"tcp://10.0.0.1:2376"}}}`, "ca.pem", "cert.pem", "key.pem")
	writeContext(t, config, "odd", `{"Name":"odd","Endpoints":{"kubernetes":{}}}`)
	writeContext(t, config, "torn", `{"Name":`)
	plain := t.TempDir()

	tests := []struct {
		name    string
		profile profile.Profile
		env     map[string]string
		want    string
		from    string
		tls     string // the CA file's directory
		fails   string
	}{
		{name: "docker_host before all", profile: profile.Profile{Name: "mine", DockerHost: "unix:///a.sock", DockerContext: "far"},
			env: map[string]string{"DOCKER_HOST": "unix:///b.sock", "DOCKER_CONFIG": config}, want: "unix:///a.sock", from: "docker_host"},
		{name: "docker_context before the environment", profile: profile.Profile{DockerContext: "far"},
			env: map[string]string{"DOCKER_HOST": "unix:///b.sock", "DOCKER_CONFIG": config}, want: "ssh://me@far", from: "docker_context"},
		{name: "DOCKER_HOST before the current context",
			env: map[string]string{"DOCKER_HOST": "unix:///b.sock", "DOCKER_CONFIG": config}, want: "unix:///b.sock", from: "DOCKER_HOST"},
		{name: "the current context", env: map[string]string{"DOCKER_CONFIG": config}, want: "ssh://me@far", from: `context "far"`},
		{name: "DOCKER_CONTEXT before the current one", env: map[string]string{"DOCKER_CONTEXT": "tls", "DOCKER_CONFIG": config},
			want: "tcp://10.0.0.1:2376", from: `context "tls"`, tls: "contexts"},
		{name: "the default context is the default socket", env: map[string]string{"DOCKER_CONTEXT": "default", "DOCKER_CONFIG": config},
			want: defaultHost(), from: "default"},
		{name: "no configuration at all", env: map[string]string{"DOCKER_CONFIG": plain}, want: defaultHost(), from: "default"},
		{name: "default context of the profile", profile: profile.Profile{DockerContext: "default"},
			env: map[string]string{"DOCKER_CONFIG": config}, want: defaultHost(), from: "docker_context"},
		{name: "TLS of the environment", env: map[string]string{"DOCKER_HOST": "tcp://h:2376", "DOCKER_CERT_PATH": "/certs"},
			want: "tcp://h:2376", from: "DOCKER_HOST", tls: "/certs"},
		{name: "TLS in the usual place", env: map[string]string{"DOCKER_HOST": "tcp://h:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CONFIG": plain},
			want: "tcp://h:2376", from: "DOCKER_HOST", tls: plain},
		{name: "no TLS asked for", env: map[string]string{"DOCKER_HOST": "tcp://h:2375"}, want: "tcp://h:2375", from: "DOCKER_HOST"},
		{name: "https is tcp with TLS", env: map[string]string{"DOCKER_HOST": "https://h:2376", "DOCKER_CERT_PATH": "/certs"},
			want: "tcp://h:2376", from: "DOCKER_HOST", tls: "/certs"},

		{name: "unknown context", profile: profile.Profile{DockerContext: "nowhere"}, env: map[string]string{"DOCKER_CONFIG": config}, fails: `no docker context "nowhere"`},
		{name: "context without docker", profile: profile.Profile{DockerContext: "odd"}, env: map[string]string{"DOCKER_CONFIG": config}, fails: "names no docker endpoint"},
		{name: "torn context", profile: profile.Profile{DockerContext: "torn"}, env: map[string]string{"DOCKER_CONFIG": config}, fails: "cannot be read"},
		{name: "no scheme", profile: profile.Profile{DockerHost: "/var/run/docker.sock"}, fails: "no scheme"},
		{name: "unknown scheme", profile: profile.Profile{DockerHost: "ftp://x"}, fails: `"ftp" is not known`},
		{name: "relative socket", profile: profile.Profile{DockerHost: "unix://docker.sock"}, fails: "not absolute"},
		{name: "no port", profile: profile.Profile{DockerHost: "tcp://host"}, fails: "a host and a port"},
		{name: "password", profile: profile.Profile{DockerHost: "ssh://me:secret@host"}, fails: "password"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := chooser{getenv: func(name string) string { return test.env[name] }, home: plain}
			got, err := c.choose(test.profile)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || tool.KindOf(err) != tool.ConfigInvalid {
					t.Fatalf("got %v, %v: want a configuration error with %q", got, err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Host != test.want || !strings.Contains(got.From, test.from) {
				t.Errorf("got %s, want %s (%s)", got, test.want, test.from)
			}
			if name := test.profile.Name; name != "" && strings.Contains(got.String(), name) {
				t.Errorf("%s names one of the profiles that may share it", got)
			}
			switch {
			case test.tls == "" && got.TLS != nil:
				t.Errorf("got TLS files %+v, want none", got.TLS)
			case test.tls != "" && (got.TLS == nil || !strings.Contains(got.TLS.CA, test.tls)):
				t.Errorf("got TLS files %+v, want some in %s", got.TLS, test.tls)
			}
		})
	}
}

func TestUnknownContextNamesTheKnown(t *testing.T) {
	config := t.TempDir()
	writeContext(t, config, "far", `{"Name":"far","Endpoints":{"docker":{"Host":"ssh://me@far"}}}`)
	c := chooser{getenv: func(name string) string { return map[string]string{"DOCKER_CONFIG": config}[name] }}
	_, err := c.choose(profile.Profile{DockerContext: "fra"})
	if hint := tool.HintOf(err); !strings.Contains(hint, "default, far") {
		t.Errorf("the hint is %q, want it to name the contexts", hint)
	}
}

func TestSSHArgs(t *testing.T) {
	tests := []struct {
		host  string
		want  string // what follows the options
		fails string
	}{
		{host: "ssh://box", want: "-- box docker system dial-stdio"},
		{host: "ssh://me@box:2222", want: "-l me -p 2222 -- box docker system dial-stdio"},
		{host: "ssh://me@box/", want: "-l me -- box docker system dial-stdio"},
		{host: "ssh://box/run/user/1000/docker.sock", want: "-- box docker --host unix:///run/user/1000/docker.sock system dial-stdio"},
		{host: "ssh://[::1]:22", want: "-p 22 -- ::1 docker system dial-stdio"},
		{host: "ssh://-oProxyCommand=x", fails: "dash"},
		{host: "ssh://box/a;reboot", fails: "remote shell"},
		{host: "ssh://box/$(x)", fails: "remote shell"},
		{host: "ssh://box?x=1", fails: "query"},
		{host: "ssh://me:pw@box", fails: "password"},
		{host: "ssh://", fails: "no host"},
	}
	for _, test := range tests {
		t.Run(test.host, func(t *testing.T) {
			args, err := sshArgs(test.host)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("got %q, %v: want an error with %q", args, err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			line := strings.Join(args, " ")
			if !strings.HasSuffix(line, " "+test.want) || !strings.Contains(line, "BatchMode=yes") {
				t.Errorf("got %q, want it to end with %q", line, test.want)
			}
		})
	}
}
