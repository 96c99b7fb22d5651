package docker

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// ownedBy reads who owns a directory of a container.
func ownedBy(t *testing.T, e *engine, container, path string) string {
	t.Helper()
	archive := must(e.get(t.Context(), container, path))(t)
	defer archive.Close()
	header := must(tar.NewReader(archive).Next())(t)
	if _, err := io.Copy(io.Discard, archive); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", header.Uid, header.Gid)
}

func TestWorkspaceBelongsToTheUser(t *testing.T) {
	withUsers := must(dockertest.Shell(t.Context()))(t)
	withUsers.User = dockertest.UserName
	named := dockertest.Use(t, withUsers)
	withUsers.User = ""
	withUsers.Volumes = []string{"/var/data"}
	root := dockertest.Use(t, withUsers)
	numbered := dockertest.Bare()
	numbered.User = "1234"
	bareUser := dockertest.Use(t, numbered)

	tests := []struct {
		name, image, user string
		readOnly          bool
		want              string
	}{
		{"root", root, "", false, "0:0"},
		{"the image's user by name", named, "", false, "1000:1000"},
		{"the image's user by number, no user list", bareUser, "", false, "1234:0"},
		{"a read-only root", bareUser, "", true, "1234:0"},
		{"the profile's user by name", root, dockertest.UserName, true, "1000:1000"},
		{"the profile's user and group", bareUser, "7:8", false, "7:8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBackend(t, echo(t))
			binding := newBinding(t, b, test.image)
			binding.Profile.User, binding.Profile.ReadOnlyRoot = test.user, test.readOnly
			h, binding := created(t, b, binding)
			for _, dir := range []string{"/workspace", stateDir} {
				if got := ownedBy(t, h.engine, binding.Environment, dir); got != test.want {
					t.Errorf("%s belongs to %s, want %s", dir, got, test.want)
				}
			}
			if got := ownedBy(t, h.engine, binding.Environment, workerPath); got != "0:0" {
				t.Errorf("the worker belongs to %s", got)
			}
			if err := h.Remove(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
			if got := left(t, binding.Store); len(got) > 0 {
				t.Errorf("left: %q", got)
			}
		})
	}
}

func TestFindUser(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\nbroken\napp:x:1000:1001::/:/bin/sh\nodd:x:minus:0::/:\nneg:x:-1:0::/:\n"
	tests := []struct {
		name     string
		uid, gid int
		fails    string
	}{
		{name: "root"},
		{name: "app", uid: 1000, gid: 1001},
		{name: "odd", fails: "no number"},
		{name: "neg", fails: "no number"},
		{name: "broken", fails: "does not list"},
		{name: "nobody", fails: "does not list"},
	}
	for _, test := range tests {
		uid, gid, err := findUser(strings.NewReader(passwd), test.name)
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: got %v", test.name, err)
			}
			continue
		}
		if err != nil || uid != test.uid || gid != test.gid {
			t.Errorf("%s: got %d:%d, %v", test.name, uid, gid, err)
		}
	}
	if _, _, err := findUser(errorReader{}, "x"); err == nil {
		t.Error("a read error was swallowed")
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("torn") }

func TestDirectoriesLeaveNamedVolumesAlone(t *testing.T) {
	archive := must(directories(containerSpec{Mounts: []mountSpec{
		{Kind: volumeMount, Target: "/a/b"},
		{Kind: volumeMount, Source: "named", Target: "/c"},
		{Kind: bindMount, Source: "/host", Target: "/d"},
	}}, 5, 6))(t)
	r := tar.NewReader(strings.NewReader(string(archive)))
	var names []string
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %d:%d %o", header.Name, header.Uid, header.Gid, header.Mode))
	}
	if want := []string{"a/b/ 5:6 755"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
