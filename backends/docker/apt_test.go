package docker

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// The settings of apt that the execution image is made with let root without
// capabilities install packages. The image itself needs a network to be built, so
// what its Dockerfile does to apt is done here to an image with this machine's apt,
// whose directories are as apt leaves them.
func TestAptInTheExecutionImage(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Log("this machine has no apt to lend to a container")
		return
	}
	dockerfile := string(must(os.ReadFile("../../testdata/images/execution.Dockerfile"))(t))
	const aptUser = 42
	setting := regexp.MustCompile(`echo '([^']+)' > (/etc/apt/\S+)`).FindStringSubmatch(dockerfile)
	removed := strings.Contains(dockerfile, "/var/cache/apt/archives/partial")

	image := func(setting []string, removed bool) string {
		i := dockertest.Skeleton()
		for n := range i.Files {
			if f := &i.Files[n]; f.Path == "/etc/passwd" {
				f.Data = append(f.Data, "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"...)
			}
		}
		dir := func(path string, uid int, mode fs.FileMode) {
			i.Files = append(i.Files, dockertest.File{Path: path, Mode: fs.ModeDir | mode, UID: uid})
		}
		for _, path := range []string{
			"/etc/apt", "/etc/apt/apt.conf.d", "/var", "/var/lib", "/var/lib/apt", "/var/lib/apt/lists",
			"/var/lib/dpkg", "/var/lib/dpkg/info", "/var/lib/dpkg/updates", "/var/cache", "/var/cache/apt", "/var/cache/apt/archives",
		} {
			dir(path, 0, 0o755)
		}
		if !removed {
			dir("/var/cache/apt/archives/partial", aptUser, 0o700)
		}
		i.Files = append(i.Files,
			dockertest.File{Path: "/var/lib/dpkg/status", Mode: 0o644},
			dockertest.File{Path: "/etc/apt/sources.list", Mode: 0o644, Data: []byte("deb [trusted=yes] copy:/workspace/repository ./\n")})
		if setting != nil {
			i.Files = append(i.Files, dockertest.File{Path: setting[2], Mode: 0o644, Data: []byte(setting[1] + "\n")})
		}
		return dockertest.Use(t, i)
	}
	repository := packages(t)
	b := newBackend(t, far(t))
	apt := func(image string) (said string, code int) {
		binding := newBinding(t, b, image)
		binding.Profile.User, binding.Profile.WritablePaths = "root", []string{"/"}
		binding.Profile.Mounts = dockertest.SkeletonMounts()
		binding.WorkspaceFolder, binding.Profile.WorkspaceSource = repository, sourceCopy
		return bash(t, opened(t, b, binding), "(apt-get update && apt-get install -y --download-only probe && ls /var/cache/apt/archives) 2>&1")
	}
	if said, code := apt(image(setting, removed)); code != 0 || !strings.Contains(said, "probe_1_all.deb") {
		t.Errorf("as the execution image is made: %d, %s", code, said)
	}
	// Without either of them it does not work, or this test would prove nothing.
	if said, code := apt(image(nil, true)); code == 0 {
		t.Errorf("without the setting: %s", said)
	}
	if said, code := apt(image(setting, false)); code == 0 {
		t.Errorf("with apt's own directory: %s", said)
	}
}

// packages is a folder with a repository of one package.
func packages(t *testing.T) string {
	t.Helper()
	folder := privateDir(t)
	control := filepath.Join(folder, "probe", "DEBIAN", "control")
	if err := os.MkdirAll(filepath.Dir(control), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, control, "Package: probe\nVersion: 1\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: a probe\n")
	script := `chmod -R u=rwX,go=rX probe && mkdir repository && dpkg-deb --build --root-owner-group probe repository/probe_1_all.deb &&
		cd repository && { dpkg-deb --field probe_1_all.deb; echo Filename: ./probe_1_all.deb
		echo Size: $(stat -c %s probe_1_all.deb); echo SHA256: $(sha256sum < probe_1_all.deb | cut -d' ' -f1); } > Packages`
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = folder
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return folder
}
