package remote

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestFindProgram: the small build beside the program is preferred, the program
// itself stands in for its own platform only.
func TestFindProgram(t *testing.T) {
	const foreign = "plan9"
	for _, c := range []struct {
		name   string
		beside []string // platforms with a build beside the program
		goos   string
		want   string // base name; "" means Unsupported
	}{
		{"alone", nil, runtime.GOOS, "caisson"},
		{"beside", []string{runtime.GOOS}, runtime.GOOS, "caisson-" + runtime.GOOS + "-" + runtime.GOARCH},
		{"another's beside", []string{foreign}, runtime.GOOS, "caisson"},
		{"foreign", []string{foreign}, foreign, "caisson-" + foreign + "-" + runtime.GOARCH},
		{"foreign, missing", []string{runtime.GOOS}, foreign, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "caisson")
			write(t, program, "the program")
			for _, goos := range c.beside {
				write(t, filepath.Join(dir, "caisson-"+goos+"-"+runtime.GOARCH), "the far end for "+goos)
			}
			var programs Programs
			got, err := programs.Find(program, c.goos, runtime.GOARCH)
			if c.want == "" {
				if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), foreign) {
					t.Fatalf("got %v, %v; want unsupported, naming the platform", got, err)
				}
				return
			}
			if err != nil || filepath.Base(got.Path) != c.want {
				t.Fatalf("got %v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestFindProgramAgain: a file that was replaced is hashed anew.
func TestFindProgramAgain(t *testing.T) {
	program := filepath.Join(t.TempDir(), "caisson")
	var programs Programs
	var sums [2]string
	for i, content := range []string{"one build", "another build"} {
		write(t, program, content)
		p, err := programs.Find(program, runtime.GOOS, runtime.GOARCH)
		if err != nil || p.Size != int64(len(content)) {
			t.Fatalf("got %v, %v", p, err)
		}
		sums[i] = p.Sum
	}
	if sums[0] == sums[1] {
		t.Error("a replaced program has the sum of the one before")
	}
}

// TestReplacedProgram: a service whose program was replaced while it runs takes no
// worker of the release that came, but where it has none of its own.
func TestReplacedProgram(t *testing.T) {
	const foreign = "plan9"
	dir := t.TempDir()
	program, self := filepath.Join(dir, "caisson"), filepath.Join(t.TempDir(), "exe")
	write(t, program, "the program")
	if err := os.Link(program, self); err != nil {
		t.Fatal(err)
	}
	beside := map[string]string{}
	for _, goos := range []string{runtime.GOOS, foreign} {
		beside[goos] = filepath.Join(dir, "caisson-"+goos+"-"+runtime.GOARCH)
		write(t, beside[goos], "the far end")
	}
	find := func(goos, want string) {
		t.Helper()
		if got, _, err := locateProgram(program, self, goos, runtime.GOARCH); got != want || err != nil {
			t.Errorf("for %s: %s, %v; want %s", goos, got, err, want)
		}
	}
	find(runtime.GOOS, beside[runtime.GOOS])
	for _, replace := range []func() error{
		func() error { return os.Remove(program) },
		func() error { return os.WriteFile(program, []byte("another release"), 0o755) },
	} {
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		find(runtime.GOOS, self)
		find(foreign, beside[foreign])
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestGoArch(t *testing.T) {
	for machine, want := range map[string]string{
		"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64",
		"i386": "386", "i486": "386", "i586": "386", "i686": "386",
		"armv6l": "arm", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
	} {
		if got := GoArch(machine); got != want {
			t.Errorf("%s: %s, want %s", machine, got, want)
		}
	}
}
