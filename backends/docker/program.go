package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// programFile is a worker's program file on this side.
type programFile struct {
	Path string
	Sum  string // SHA-256, hex
	Size int64  // bytes
}

// binaries finds the program files and remembers their hashes.
type binaries struct {
	// executable is this program's path, "" for the running one.
	executable string

	mu    sync.Mutex
	known map[string]knownBinary
}

type knownBinary struct {
	programFile
	modified time.Time
}

// find returns the worker for a CPU: this program where it is one for Linux and
// that CPU, else caisson-linux-<arch> beside it.
func (s *binaries) find(arch string) (programFile, error) {
	path, err := s.path(arch)
	if err != nil {
		return programFile{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return programFile{}, tool.Errorf(tool.Unsupported, "there is no worker for linux/%s: %w", arch, err).
			WithHint("put %s of this release beside the program, or name a worker that the image has by the profile's member worker", filepath.Base(path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[path]; ok && known.Size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.programFile, nil
	}
	b, err := hashFile(path)
	if err != nil {
		return programFile{}, tool.Errorf(tool.Internal, "the worker cannot be read: %w", err)
	}
	if s.known == nil {
		s.known = map[string]knownBinary{}
	}
	s.known[path] = knownBinary{b, info.ModTime()}
	return b, nil
}

func (s *binaries) path(arch string) (string, error) {
	own := runtime.GOOS == "linux" && runtime.GOARCH == arch
	executable := s.executable
	if executable == "" {
		if own {
			// The file that runs, even when it was replaced since.
			return "/proc/self/exe", nil
		}
		var err error
		if executable, err = os.Executable(); err != nil {
			return "", tool.Errorf(tool.Internal, "this program cannot be found: %w", err)
		}
	}
	if own {
		return executable, nil
	}
	return filepath.Join(filepath.Dir(executable), "caisson-linux-"+arch), nil
}

func hashFile(path string) (programFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return programFile{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxWorkerBytes+1))
	if err != nil {
		return programFile{}, err
	}
	if n > maxWorkerBytes {
		return programFile{}, fmt.Errorf("%s has more than %d bytes", path, maxWorkerBytes)
	}
	return programFile{Path: path, Sum: hex.EncodeToString(sum.Sum(nil)), Size: n}, nil
}

// archive is a plain tar archive of the program alone.
func (f programFile) archive() (io.ReadCloser, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	err = tar.NewWriter(&head).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: workerName, Mode: 0o555, Size: f.Size,
	})
	if err != nil {
		file.Close()
		return nil, err
	}
	const block = 512
	padding := (block - f.Size%block) % block
	// Two empty blocks end an archive.
	end := bytes.NewReader(make([]byte, padding+2*block))
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&head, io.LimitReader(file, f.Size), end), file}, nil
}

// check reads an archive of the program, as it came back from a daemon, and
// says whether it holds exactly this program, executable.
func (f programFile) check(archive io.Reader) error {
	r := tar.NewReader(archive)
	header, err := r.Next()
	if err != nil {
		return err
	}
	switch {
	case header.Typeflag != tar.TypeReg:
		return fmt.Errorf("it is no regular file")
	case header.Size != f.Size:
		return fmt.Errorf("it has %d bytes instead of %d", header.Size, f.Size)
	case header.Mode&0o555 != 0o555:
		return fmt.Errorf("its mode is %#o", header.Mode)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.Sum {
		return fmt.Errorf("its SHA-256 is %s instead of %s", got, f.Sum)
	}
	return nil
}
