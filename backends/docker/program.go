package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/caisson-dev/caisson/backends/remote"
)

// programFile is a worker's program file on this side.
type programFile remote.Program

// binaries finds the program files for the CPUs of daemons.
type binaries struct {
	// executable is this program's path, "" for the running one.
	executable string
	programs   remote.Programs
}

// find returns the worker for a CPU: this program where it is one for Linux and
// that CPU, else caisson-linux-<arch> beside it.
func (s *binaries) find(arch string) (programFile, error) {
	p, err := s.programs.Find(s.executable, "linux", arch)
	return programFile(p), err
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
