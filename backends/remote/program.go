package remote

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// maxProgramBytes is more than any build of the worker has.
const maxProgramBytes = 256 << 20

// Program is a worker's program file on this side.
type Program struct {
	Path string
	Sum  string // SHA-256, hex
	Size int64  // bytes
}

// Programs finds the program files that workers elsewhere are made of and
// remembers their hashes. The zero value is ready.
type Programs struct {
	mu    sync.Mutex
	known map[string]knownProgram
}

type knownProgram struct {
	Program
	modified time.Time
}

// Find returns the worker for a platform, in Go's words: caisson-<os>-<arch>
// beside this program, which is the far end alone and small, else this program
// itself where it is one for that platform. A running one whose file was replaced
// since is its own worker. The executable is this program's path, or empty for the
// running one. A missing file is [tool.Unsupported].
func (s *Programs) Find(executable, goos, goarch string) (Program, error) {
	self := ""
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return Program{}, tool.Errorf(tool.Internal, "this program cannot be found: %w", err)
		}
		if runtime.GOOS == "linux" {
			self = "/proc/self/exe"
		}
	}
	path, info, err := locateProgram(executable, self, goos, goarch)
	if err != nil {
		return Program{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[path]; ok && known.Size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.Program, nil
	}
	p, err := hashProgram(path)
	if err != nil {
		return Program{}, tool.Errorf(tool.Internal, "the worker cannot be read: %w", err)
	}
	if s.known == nil {
		s.known = map[string]knownProgram{}
	}
	s.known[path] = knownProgram{p, info.ModTime()}
	return p, nil
}

// locateProgram finds the program for a platform. Self is another path of the
// executable, which leads to the file that runs whatever lies at the first by now;
// "" where there is none.
func locateProgram(executable, self, goos, goarch string) (string, fs.FileInfo, error) {
	own := runtime.GOOS == goos && runtime.GOARCH == goarch
	if own && self != "" {
		if running, err := os.Stat(self); err == nil {
			if there, err := os.Stat(executable); err != nil || !os.SameFile(running, there) {
				return self, running, nil // what lies beside the one that replaced it is of another release
			}
		}
	}
	beside := filepath.Join(filepath.Dir(executable), "caisson-"+goos+"-"+goarch)
	info, err := os.Stat(beside)
	if err == nil {
		return beside, info, nil
	}
	if !own {
		return "", nil, tool.Errorf(tool.Unsupported, "there is no worker for %s/%s: %w", goos, goarch, err).
			WithHint("put %s of this release beside the program, or name a worker that is there already by the profile's member worker", filepath.Base(beside))
	}
	executable = cmp.Or(self, executable)
	if info, err = os.Stat(executable); err != nil {
		return "", nil, tool.Errorf(tool.Internal, "this program cannot be found: %w", err)
	}
	return executable, info, nil
}

func hashProgram(path string) (Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return Program{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxProgramBytes+1))
	if err != nil {
		return Program{}, err
	}
	if n > maxProgramBytes {
		return Program{}, fmt.Errorf("%s has more than %d bytes", path, maxProgramBytes)
	}
	return Program{Path: path, Sum: hex.EncodeToString(sum.Sum(nil)), Size: n}, nil
}

// GoArch is Go's word for a CPU that uname -m names, which is also how engines of
// containers name it. One that it does not know stays as it is.
func GoArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "i386", "i486", "i586", "i686":
		return "386"
	case "armv6l", "armv7l", "armv8l":
		return "arm"
	}
	return machine
}
