package site

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// fill unpacks the archive that is the body into the environment's workspace. It
// is a part of the creation: what is there already is never written over.
func fill(r wire.SiteRequest, body io.Reader) error {
	found, err := find(r)
	if err != nil {
		return err
	}
	if r.Replace != found.Record.Nonce {
		return notOurs(found.Place.Directory)
	}
	root, err := os.OpenRoot(found.Place.Workspace)
	if err != nil {
		return tool.Errorf(tool.BackendUnavailable, "open the workspace: %w", err).WithPath(found.Place.Workspace)
	}
	defer root.Close()
	if _, err := io.ReadFull(body, make([]byte, 1)); err != nil { // the newline
		return tool.Errorf(tool.InvalidParams, "no archive follows the request: %w", err)
	}
	if err := unpack(root, tar.NewReader(body)); err != nil {
		return unusable(found.Place.Workspace, fmt.Errorf("unpack the folder: %w", err))
	}
	return nil
}

// unpack makes what the archive holds. Directories get their modes when
// everything is in them.
func unpack(root *os.Root, archive *tar.Reader) error {
	type closing struct {
		name string
		mode fs.FileMode
		time time.Time
	}
	var directories []closing
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(filepath.FromSlash(h.Name))
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the archive holds %q, which leads out", h.Name)
		}
		mode := fs.FileMode(h.Mode).Perm()
		switch h.Typeflag {
		case tar.TypeDir:
			if err := root.MkdirAll(name, 0o700); err != nil {
				return err
			}
			directories = append(directories, closing{name, mode, h.ModTime})
		case tar.TypeSymlink:
			if err := root.Symlink(h.Linkname, name); err != nil {
				return err
			}
		case tar.TypeReg:
			if err := unpackFile(root, name, archive); err != nil {
				return err
			}
			if err := errors.Join(root.Chmod(name, mode), root.Chtimes(name, h.ModTime, h.ModTime)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the archive holds %q, which is neither file, directory nor link", h.Name)
		}
	}
	// The inner ones first: an outer one may be closed.
	for i := len(directories) - 1; i >= 0; i-- {
		d := directories[i]
		if d.name == "." {
			continue // it stays private
		}
		if err := errors.Join(root.Chtimes(d.name, d.time, d.time), root.Chmod(d.name, d.mode)); err != nil {
			return err
		}
	}
	return nil
}

func unpackFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
