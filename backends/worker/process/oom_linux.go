package process

import (
	"bytes"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/worker/cgroup"
)

// maxOOMText is more than the kernel writes into such a file: a few words with numbers.
const maxOOMText = 512

// newOOMKills returns what tells how many processes of this program's memory cgroup the
// kernel has ended because memory was short. It counts before it kills.
func newOOMKills() func() (count uint64, known bool) {
	group, err := cgroup.Own("memory")
	if err != nil {
		return func() (uint64, bool) { return 0, false }
	}
	file := oomFile(group)
	return func() (uint64, bool) {
		// Not os.ReadFile, which takes thrice the time: each start of a command looks.
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, false
		}
		var text [maxOOMText]byte
		n, err := unix.Read(fd, text[:])
		_ = unix.Close(fd) // nothing was written
		if err != nil {
			return 0, false
		}
		return oomCount(text[:n])
	}
}

// oomCount is the number of the line "oom_kill", which Linux has since 4.13.
func oomCount(text []byte) (uint64, bool) {
	for line := range bytes.Lines(text) {
		if n, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			count, err := strconv.ParseUint(string(bytes.TrimSpace(n)), 10, 64)
			return count, err == nil
		}
	}
	return 0, false
}

// oomFile is where that count stands.
func oomFile(group cgroup.Group) string {
	if group.First {
		// Where it has the memory, the second version counts nothing.
		return path.Join(group.Dir, "memory.oom_control")
	}
	return path.Join(group.Dir, "memory.events")
}
