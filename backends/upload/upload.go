package upload

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/diskfile"
)

// Options say how a folder is sent.
type Options struct {
	// UID and GID are who everything belongs to in the environment.
	UID, GID int
	// MaxBytes and MaxEntries are the limits; 0 means the package's.
	MaxBytes   int64
	MaxEntries int
	// Report is told how far it is, at most twice a second, from the goroutine
	// that sends. Nil is allowed.
	Report func(step string)
}

// Size is what a folder holds that is to be sent.
type Size struct {
	Entries int
	Bytes   int64 // of regular files
}

// Open looks through the folder, refuses one beyond the limits before anything
// is sent, and returns the archive. Its entries' names are relative to the
// folder and as the file system has them, UTF-8 or not; modes are kept, links are
// kept as they are, wherever they point, and what is neither file, directory
// nor link is left out.
//
// Reading fails when ctx ends, or when a file cannot be read or has become
// shorter since its beginning was sent. Close ends the reading and waits for it.
//
// Errors are [*tool.Error]: [tool.Unsupported] beyond the limits, [tool.Denied]
// for what this user may not read, [tool.Internal] and retryable for what changed.
func Open(ctx context.Context, folder string, o Options) (io.ReadCloser, Size, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = MaxBytes
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = MaxEntries
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	o.Report("looking through the folder " + folder)
	size, err := measure(ctx, folder, o)
	if err != nil {
		return nil, size, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &stream{PipeReader: r, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		sender := &sender{ctx: ctx, o: o, size: size, archive: tar.NewWriter(w)}
		// Without an error the reader comes to an end of file.
		w.CloseWithError(sender.send(folder))
	}()
	return s, size, nil
}

// stream is the archive that is being written.
type stream struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

func (s *stream) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	<-s.ended
	return err
}

// measure adds up what is to be sent, and fails beyond the limits.
func measure(ctx context.Context, folder string, o Options) (Size, error) {
	var size Size
	err := walkFolder(ctx, folder, func(e entry) error {
		if !sendable(e.info) {
			return nil
		}
		size.Entries++
		if e.info.Mode().IsRegular() {
			size.Bytes += e.info.Size()
		}
		switch {
		case size.Bytes > o.MaxBytes:
			return beyond("%s has more than %d MiB", folder, o.MaxBytes>>20)
		case size.Entries > o.MaxEntries:
			return beyond("%s has more than %d files and directories", folder, o.MaxEntries)
		}
		return nil
	})
	return size, err
}

func beyond(format string, args ...any) error {
	return tool.Errorf(tool.Unsupported, "the folder "+format+", which is the most that workspace_source copy sends", args...).
		WithHint("have .gitignore or .ignore leave out what is not needed, or mount the folder with host_workspace where the backend can")
}

// sendable reports whether an entry has a place in an environment: sockets,
// devices and pipes mean nothing there.
func sendable(info fs.FileInfo) bool {
	return info.Mode().Type()&^(fs.ModeDir|fs.ModeSymlink) == 0
}

// sender writes the archive.
type sender struct {
	ctx     context.Context
	o       Options
	size    Size
	archive *tar.Writer
	buffer  []byte
	sent    int64
	told    time.Time
}

func (s *sender) send(folder string) error {
	s.buffer = make([]byte, copyBuffer)
	s.tell()
	if err := walkFolder(s.ctx, folder, s.entry); err != nil {
		return err
	}
	return s.archive.Close()
}

// tell reports how far it is.
func (s *sender) tell() {
	if now := time.Now(); now.Sub(s.told) >= progressInterval {
		s.told = now
		s.o.Report(fmt.Sprintf("sending the folder: %d of %d MiB", s.sent>>20, s.size.Bytes>>20))
	}
}

// entry writes one entry.
func (s *sender) entry(e entry) error {
	if !sendable(e.info) {
		return nil
	}
	s.tell()
	if e.info.Mode().IsRegular() {
		return s.file(e)
	}
	var link string
	if e.info.Mode().Type() == fs.ModeSymlink {
		var err error
		if link, err = e.parent.Readlink(e.name); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return unreadable(e.path, err)
		}
	}
	return s.header(e.path, e.info, filepath.ToSlash(link))
}

// file writes one regular file: as many bytes as it had when it was opened.
func (s *sender) file(e entry) error {
	f, info, err := diskfile.OpenIn(e.parent, e.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, diskfile.ErrNotRegular): // it was one when it was listed
		return unreadable(e.path, errChanged)
	case err != nil:
		return unreadable(e.path, err)
	}
	defer f.Close()
	if s.sent+info.Size() > s.o.MaxBytes { // it has grown since it was measured
		return beyond("grew while it was sent to more than %d MiB", s.o.MaxBytes>>20)
	}
	if err := s.header(e.path, info, ""); err != nil {
		return err
	}
	left := info.Size()
	for left > 0 {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		n, err := f.Read(s.buffer[:min(left, int64(len(s.buffer)))])
		if n > 0 {
			if _, err := s.archive.Write(s.buffer[:n]); err != nil {
				return err
			}
			left -= int64(n)
			s.sent += int64(n)
			s.tell()
			continue
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("it lost %d bytes: %w", left, errChanged)
		}
		if err != nil {
			return unreadable(e.path, err)
		}
	}
	return nil
}

// header writes the header of an entry. Its time is in whole seconds, which
// spares most entries a second header.
func (s *sender) header(path string, info fs.FileInfo, link string) error {
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return unreadable(path, err)
	}
	if info.IsDir() {
		path += "/"
	}
	// Who owns it here is nobody's business there, nor when it was last read.
	*h = tar.Header{
		Typeflag: h.Typeflag, Name: path, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode,
		Uid: s.o.UID, Gid: s.o.GID, ModTime: info.ModTime().Truncate(time.Second),
	}
	return s.archive.WriteHeader(h)
}
