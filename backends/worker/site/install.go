package site

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/diskfile"
)

// executable opens the file of the program that runs, and says where it is. Errors are
// *tool.Error.
func executable() (*os.File, string, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, "", unknownProgram("/proc/self", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", tool.Errorf(tool.Internal, "read the worker's own program: %w", err)
	}
	return f, path, nil
}

// unknownProgram is the error for a program that the system does not tell where it is:
// Linux does so in the directory self.
func unknownProgram(self string, err error) error {
	if _, missing := os.Stat(self); runtime.GOOS != "linux" || !errors.Is(missing, fs.ErrNotExist) {
		return tool.Errorf(tool.Internal, "find the worker's own program: %w", err)
	}
	return tool.Errorf(tool.Unsupported, "there is no /proc on the machine, by which the worker knows itself and the processes that it starts: %w", err).
		WithHint("mount it there, also in a chroot or a jail of the account's: mount -t proc proc /proc")
}

// checkSum compares this program's file with what it should be.
func checkSum(want string) error {
	f, path, err := executable()
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return tool.Errorf(tool.Internal, "read the worker's own program: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return tool.Errorf(tool.ProtocolMismatch, "the worker %s has the SHA-256 %s instead of %s", path, got, want).WithPath(path)
	}
	return nil
}

// install gives this program, whose content was checked, its name, so that a
// crash leaves the whole file there or none.
func install(name string) error {
	if !component(name) {
		return tool.Errorf(tool.InvalidParams, "%q is not a file name", name)
	}
	f, path, err := executable()
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	dir := filepath.Dir(path)
	if err == nil {
		err = os.Rename(path, filepath.Join(dir, name))
	}
	if err == nil {
		err = diskfile.SyncDir(dir)
	}
	if err != nil {
		return tool.Errorf(tool.BackendUnavailable, "put the worker in its place: %w", err).WithPath(dir)
	}
	return nil
}

// buildDirectory is the name of a directory that holds one build's worker: its
// version and the head of its hash.
var buildDirectory = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._+-]+-[0-9a-f]{16}$`) })

// sweep removes the workers of other builds beside this one that nothing runs
// and nobody has used for a time. Should somebody need one again, it is put
// there again.
func sweep(olderThan time.Duration, dryRun bool) (wire.SiteReply, error) {
	var reply wire.SiteReply
	path, err := os.Executable()
	if err != nil {
		return reply, tool.Errorf(tool.Internal, "find the worker's own program: %w", err)
	}
	own := filepath.Dir(path)
	if !buildDirectory().MatchString(filepath.Base(own)) {
		return reply, nil // it was put there by somebody else
	}
	return sweepBeside(own, olderThan, dryRun)
}

// sweepBeside is sweep for the worker in the directory own.
func sweepBeside(own string, olderThan time.Duration, dryRun bool) (wire.SiteReply, error) {
	var reply wire.SiteReply
	now := time.Now()
	// Used today: the date is what tells others so.
	if err := os.Chtimes(own, now, now); err != nil && !errors.Is(err, fs.ErrPermission) {
		return reply, tool.Errorf(tool.BackendUnavailable, "mark the worker as used: %w", err).WithPath(own)
	}
	if !dryRun {
		if err := sweepUploads(own, now); err != nil {
			return reply, err
		}
	}
	parent := filepath.Dir(own)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return reply, tool.Errorf(tool.BackendUnavailable, "list the workers: %w", err).WithPath(parent)
	}
	running, err := executables()
	if err != nil {
		return reply, tool.Errorf(tool.BackendUnavailable, "look at what runs: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || dir == own || !buildDirectory().MatchString(e.Name()) ||
			now.Sub(info.ModTime()) < olderThan || running[dir] {
			continue
		}
		if !dryRun {
			if err := os.RemoveAll(dir); err != nil {
				return reply, tool.Errorf(tool.BackendUnavailable, "remove an old worker: %w", err).WithPath(dir)
			}
		}
		reply.Swept = append(reply.Swept, dir)
	}
	return reply, nil
}

// uploadPrefix begins the names of programs that are being sent; staleUpload is
// how long after its last byte one counts as given up.
const (
	uploadPrefix = ".upload-"
	staleUpload  = time.Hour
)

// sweepUploads removes what uploads that were cut off have left.
func sweepUploads(own string, now time.Time) error {
	entries, err := os.ReadDir(own)
	if err != nil {
		return tool.Errorf(tool.BackendUnavailable, "list uploads: %w", err).WithPath(own)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), uploadPrefix) || now.Sub(info.ModTime()) < staleUpload {
			continue
		}
		if err := os.Remove(filepath.Join(own, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return tool.Errorf(tool.BackendUnavailable, "remove an old upload: %w", err).WithPath(own)
		}
	}
	return nil
}
