package session

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"
)

// workspace reads the URI or path of the opened folder, "" for none.
func workspace(s string) (uri, folder string, err error) {
	if s == "" {
		return "", "", nil
	}
	if filepath.IsAbs(s) {
		return opened(s)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", "", invalid("workspace", "%q is not a URI: %w", s, err)
	case u.Scheme != "file":
		return "", "", invalid("workspace", "the workspace must be a file URI or an absolute path, not %q", s)
	case u.Host != "" && u.Host != "localhost" && runtime.GOOS != "windows":
		return "", "", invalid("workspace", "the workspace %q is on another host", s)
	}
	folder = filepath.FromSlash(u.Path)
	if runtime.GOOS == "windows" {
		folder = windowsFolder(u.Host, folder)
	}
	if !filepath.IsAbs(folder) {
		return "", "", invalid("workspace", "the workspace must be an absolute path, not %q", s)
	}
	return opened(folder)
}

// opened is the folder of an absolute path, which bindings, profiles and workers have
// as text.
func opened(path string) (uri, folder string, err error) {
	folder = filepath.Clean(path)
	if uri = fileURI(folder); !utf8.ValidString(folder) {
		return "", "", invalid("workspace", "the folder %s cannot be opened: its path is not UTF-8", uri).
			WithHint("rename what of the path is not, and open it again")
	}
	return uri, folder, nil
}

// windowsFolder reads \C:\folder and, with a host, a share.
func windowsFolder(host, path string) string {
	if host != "" && host != "localhost" {
		return `\\` + host + path
	}
	return strings.TrimPrefix(path, `\`)
}

// fileURI is the one URI of a folder, however it was written.
func fileURI(folder string) string {
	path := filepath.ToSlash(folder)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// isFolder says why a path names no directory that can be looked at; nil when it
// does.
func isFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s is not there", path)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", path)
	}
	return nil
}
