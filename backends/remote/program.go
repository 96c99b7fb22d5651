package remote

import (
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
// itself where it is one for that platform. The executable is this program's
// path, or empty for the running one. A missing file is [tool.Unsupported].
func (s *Programs) Find(executable, goos, goarch string) (Program, error) {
	path, info, err := locateProgram(executable, goos, goarch)
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

func locateProgram(executable, goos, goarch string) (string, fs.FileInfo, error) {
	running := executable == ""
	if running {
		var err error
		if executable, err = os.Executable(); err != nil {
			return "", nil, tool.Errorf(tool.Internal, "this program cannot be found: %w", err)
		}
	}
	beside := filepath.Join(filepath.Dir(executable), "caisson-"+goos+"-"+goarch)
	info, err := os.Stat(beside)
	if err == nil {
		return beside, info, nil
	}
	if runtime.GOOS != goos || runtime.GOARCH != goarch {
		return "", nil, tool.Errorf(tool.Unsupported, "there is no worker for %s/%s: %w", goos, goarch, err).
			WithHint("put %s of this release beside the program, or name a worker that is there already by the profile's member worker", filepath.Base(beside))
	}
	if running && goos == "linux" {
		// The file that runs, even when it was replaced since.
		executable = "/proc/self/exe"
	}
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
