package wasm

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// place is one preopened directory: guests see it at its guest path, and tools
// work in it.
type place struct {
	profile.Preopen
	root  *workspace.Root
	tools *tools.Set
	file  string // which directory it is
}

// openPlaces opens the profile's directories, in its order: relative paths are in
// the first.
func openPlaces(at backends.Binding) (places []*place, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closePlaces(places))
			places = nil
		}
	}()
	for i, o := range at.Profile.Preopens {
		p, err := openPlace(at, o, i > 0)
		if err != nil {
			return places, err
		}
		places = append(places, p)
	}
	return places, nil
}

func openPlace(at backends.Binding, o profile.Preopen, absolute bool) (*place, error) {
	if err := staysInFolder(at, o.Host); err != nil {
		return nil, err
	}
	root, err := workspace.OpenAs(o.Host, workspace.View{Path: o.Guest, Absolute: absolute})
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, tool.Errorf(tool.BackendUnavailable, "open the directory %s of guests: %w", o.Host, err).WithPath(o.Host)
	case at.Provisioned:
		return nil, tool.Errorf(tool.EnvironmentLost, "the session's directory %s is not there any more", o.Host).
			WithHint("bring it back, or open a new session").WithPath(o.Host)
	default:
		return nil, tool.Errorf(tool.BackendUnavailable, "there is no directory %s, which the profile gives to guests", o.Host).
			WithHint("make it, or correct preopens in the profile").WithPath(o.Host)
	}
	info, err := root.Info()
	if err != nil {
		return nil, errors.Join(tool.Errorf(tool.BackendUnavailable, "open the directory %s of guests: %w", o.Host, err).WithPath(o.Host), root.Close())
	}
	return &place{Preopen: o, root: root, file: engine.FileID(info)}, nil
}

// staysInFolder refuses a directory below the opened folder that a link, which
// whoever works there could have made, leads out of it.
func staysInFolder(at backends.Binding, host string) error {
	if at.WorkspaceFolder == "" {
		return nil
	}
	rel, err := filepath.Rel(at.WorkspaceFolder, host)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return nil //nolint:nilerr // it is elsewhere, as the user wrote it
	}
	root, err := os.OpenRoot(at.WorkspaceFolder)
	if err != nil {
		return nil //nolint:nilerr // told better by whoever opens it
	}
	defer root.Close()
	if _, err := root.Stat(rel); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return tool.Errorf(tool.PathOutsideRoot, "the directory %s of guests leads out of the opened folder through a symbolic link", host).
		WithHint("write the path that is meant in the profile's preopens").WithPath(host)
}

func closePlaces(places []*place) (err error) {
	for _, p := range places {
		err = errors.Join(err, p.root.Close())
	}
	return err
}

// mounts are the places as the engine is told of them.
func mounts(places []*place) []engine.Mount {
	var all []engine.Mount
	for _, p := range places {
		all = append(all, engine.Mount{Host: p.root.Dir(), Guest: p.Guest, ReadOnly: p.ReadOnly, File: p.file})
	}
	return all
}

// at finds the place that a tool's path is in: of those whose guest path it is
// below, the deepest; a relative path is in the first.
func (e *environment) at(p string) (*place, error) {
	if len(e.places) == 0 {
		return nil, errNoDirectory()
	}
	raw, err := workspace.Parse(p)
	if err != nil {
		return nil, err
	}
	if !path.IsAbs(raw) {
		return e.places[0], nil
	}
	raw = path.Clean(raw)
	var best *place
	for _, o := range e.places {
		if below(raw, o.Guest) && (best == nil || len(o.Guest) > len(best.Guest)) {
			best = o
		}
	}
	if best != nil {
		return best, nil
	}
	var known []string
	for _, o := range e.places {
		known = append(known, o.Guest)
	}
	return nil, tool.Errorf(tool.PathOutsideRoot, "the path %q is in none of the environment's directories", workspace.Format(raw)).
		WithHint("they are %s; relative paths are in %s", strings.Join(known, ", "), e.places[0].Guest).WithPath(workspace.Format(raw))
}

// below reports whether p is dir or in it.
func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func errNoDirectory() error {
	return tool.Errorf(tool.Unsupported, "this profile gives guests no directory, so there are no files").
		WithHint(`add a directory to the profile, as in "preopens": ["/work::${workspaceFolder}"]`)
}

func (p *place) errReadOnly(path string) error {
	return tool.Errorf(tool.Denied, "the directory %s is read-only in this profile", p.Guest).
		WithHint("write somewhere else, or preopen it without readonly").WithPath(path)
}
