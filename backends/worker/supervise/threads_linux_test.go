package supervise

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/worker/cgroup"
)

// tree makes files in a directory of the test's own.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGroupsRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  int
	}{
		"no limit is seen":    {nil, math.MaxInt},
		"none":                {map[string]string{"pids.max": "max\n", "pids.current": "9\n"}, math.MaxInt},
		"much":                {map[string]string{"pids.max": "512\n", "pids.current": "12\n"}, 109},
		"little":              {map[string]string{"pids.max": "24\n", "pids.current": "17\n"}, 0},
		"some":                {map[string]string{"pids.max": "100\n", "pids.current": "12\n"}, 6},
		"nothing":             {map[string]string{"pids.max": "24\n", "pids.current": "24\n"}, 0},
		"a lower one by hand": {map[string]string{"pids.max": "24\n", "pids.current": "30\n"}, 0},
		"of one above": {map[string]string{
			"pids.max": "100\n", "pids.current": "20\n", "a/pids.max": "max\n", "a/pids.current": "2\n",
			"a/b/pids.max": "512\n", "a/b/pids.current": "2\n",
		}, 4},
		"of the own": {map[string]string{
			"pids.max": "max\n", "pids.current": "20\n", "a/b/pids.max": "64\n", "a/b/pids.current": "2\n",
		}, 0},
		"not turned on below": {map[string]string{"a/pids.max": "512\n", "a/pids.current": "12\n", "a/b/cgroup.procs": "1\n"}, 109},
		"no use of it":        {map[string]string{"pids.max": "512\n"}, 0},
		"no number":           {map[string]string{"pids.max": "\n", "pids.current": "1\n"}, 0},
		"no number in use":    {map[string]string{"pids.max": "512\n", "pids.current": "\n"}, 0},
		"what no file is":     {map[string]string{"pids.max/x": "\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, tt.files)
			if got := groupsRoom([]string{filepath.Join(dir, "a", "b"), filepath.Join(dir, "a"), dir}); got != tt.want {
				t.Errorf("room for %d, want %d", got, tt.want)
			}
		})
	}
}

func TestSystemRoom(t *testing.T) {
	const load, threads, pids = "loadavg", "sys/kernel/threads-max", "sys/kernel/pid_max"
	for name, tt := range map[string]struct {
		files map[string]string
		user  uint64
		want  int
	}{
		"no limit at all":         {map[string]string{load: "0.00 0.01 0.05 2/936 7\n"}, unix.RLIM_INFINITY, math.MaxInt},
		"far more than there are": {map[string]string{load: "0.00 0.01 0.05 2/936 7\n"}, 10_000, 2250},
		"an account that is full": {map[string]string{load: "0.00 0.01 0.05 2/1000 7\n"}, 1024, 0},
		"some":                    {map[string]string{load: "0.00 0.01 0.05 2/936 7\n"}, 1024, 6},
		"few threads":             {map[string]string{load: "0 0 0 2/936 7\n", threads: "1100\n", pids: "32768\n"}, unix.RLIM_INFINITY, 25},
		"few numbers":             {map[string]string{load: "0 0 0 2/936 7\n", threads: "32768\n", pids: "1100\n"}, unix.RLIM_INFINITY, 25},
		"the user's is the least": {map[string]string{load: "0 0 0 2/936 7\n", threads: "32768\n", pids: "1100\n"}, 1008, 2},
		"nobody counts":           {nil, unix.RLIM_INFINITY, 0},
		"no count":                {map[string]string{load: "0.00 0.01 0.05 2 7\n"}, unix.RLIM_INFINITY, 0},
		"a short one":             {map[string]string{load: "0.00 0.01 0.05\n"}, unix.RLIM_INFINITY, 0},
		"no number":               {map[string]string{load: "0 0 0 2/936 7\n", threads: "x\n"}, unix.RLIM_INFINITY, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := systemRoom(tree(t, tt.files), tt.user); got != tt.want {
				t.Errorf("room for %d, want %d", got, tt.want)
			}
		})
	}
}

// The least that any limit gives counts, and none where something is hidden.
func TestThreadRoom(t *testing.T) {
	proc := tree(t, map[string]string{"loadavg": "0 0 0 1/1 7\n", "sys/kernel/pid_max": "165\n"})
	dir := tree(t, map[string]string{"pids.max": "100\n", "pids.current": "20\n", "a/pids.max": "max\n", "b/x": ""})
	for name, tt := range map[string]struct {
		group cgroup.Group
		err   error
		want  int
	}{
		"a group below one with a limit": {cgroup.Group{Dir: filepath.Join(dir, "a"), Top: dir}, nil, 4},
		"a group without one":            {cgroup.Group{Dir: filepath.Join(dir, "b"), Top: filepath.Join(dir, "b")}, nil, 25},
		"no group":                       {cgroup.Group{}, cgroup.ErrNone, 25},
		"a group that is hidden":         {cgroup.Group{}, fs.ErrPermission, 0},
	} {
		own := func(string) (cgroup.Group, error) { return tt.group, tt.err }
		if got := threadRoom(own, proc); got != tt.want {
			t.Errorf("%s: room for %d, want %d", name, got, tt.want)
		}
	}
}

// The user's own limit is looked at. It stays above all that there is, or the runtime
// might itself meet it meanwhile.
func TestThreadRoomOfUser(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	all, known := allTasks("/proc")
	if !known {
		t.Fatal("the kernel does not tell its tasks")
	}
	limit := before
	limit.Cur = min(before.Cur, uint64(all+2*needed))
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		t.Fatal(err)
	}
	room := ThreadRoom()
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	// Others may have ended since they were counted.
	if room > needed {
		t.Errorf("room for %d where %d are left", room, 2*needed)
	}
}
