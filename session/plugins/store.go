package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/diskfile"
	"github.com/caisson-dev/caisson/session/store"
)

// Store is an open store of plugins. Its methods may be called concurrently, also
// while another process has the store open.
type Store struct {
	dir string
	now func() time.Time
}

// Open opens the store in the directory, which is created when it is missing. now
// is the clock; nil is [time.Now].
func Open(dir string, now func() time.Time) (*Store, error) {
	if now == nil {
		now = time.Now
	}
	s := &Store{dir: dir, now: now}
	for _, d := range []string{dir, s.path("blobs"), s.path("listings"), s.path("names")} {
		if err := store.PrivateDir(d); err != nil {
			return nil, tool.Errorf(tool.Internal, "the directory of registered tools cannot be used: %w", err).WithPath(d)
		}
	}
	return s, nil
}

func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// Plugin is one registered WebAssembly tool, or several in one module.
type Plugin struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Profile is the wasm profile that it runs in; "" for the session's choice.
	Profile string `json:"profile,omitempty"`
	// Source is the file that it was registered from.
	Source       string    `json:"source,omitempty"`
	RegisteredAt time.Time `json:"registered_at"`
	// Tools are what its listing says. They are not in the record.
	Tools []tool.Description `json:"-"`
}

// record is a Plugin on disk.
type record struct {
	Format int `json:"format"`
	Plugin
}

// Put takes a file of at most limit bytes into the store, with the first bytes
// that begin, and returns its hash in 64 hex digits.
func (s *Store) Put(ctx context.Context, file string, limit int64, begin string) (sum string, err error) {
	in, _, err := diskfile.Open(file)
	if err != nil {
		return "", unusable(file, err)
	}
	defer in.Close()
	// It is mostly there already: sessions are opened more often than files change.
	if sum, err = copyHashed(io.Discard, in, limit, begin); err != nil {
		return "", unusable(file, err)
	}
	if _, gone := s.Blob(sum); gone == nil {
		return sum, s.Hold(ctx, sum)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", unusable(file, err)
	}
	temp, err := os.CreateTemp(s.path("blobs"), ".new-")
	if err != nil {
		return "", s.broken(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	sum, err = copyHashed(temp, in, limit, begin)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return "", unusable(file, err)
	}
	return sum, s.keep(ctx, temp.Name(), sum)
}

// copyHashed copies a file that begins as it should, and returns its hash.
func copyHashed(to io.Writer, from io.Reader, limit int64, begin string) (string, error) {
	head := make([]byte, len(begin))
	if n, err := io.ReadFull(from, head); string(head[:n]) != begin {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errNotModule
		}
		return "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h), io.MultiReader(strings.NewReader(begin), io.LimitReader(from, limit+1-int64(len(begin)))))
	switch {
	case err != nil:
		return "", err
	case n > limit:
		return "", fmt.Errorf("it is longer than %d bytes", limit)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ModuleHead is what every WebAssembly module of version 1 begins with.
const ModuleHead = "\x00asm\x01\x00\x00\x00"

var errNotModule = errors.New("it is not a WebAssembly module")

func unusable(file string, err error) error {
	var known *tool.Error
	if errors.As(err, &known) {
		return err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return tool.Errorf(tool.ConfigInvalid, "%s cannot be used: %w", file, err).WithPath(file)
}

func (s *Store) broken(err error) error {
	return tool.Errorf(tool.Internal, "the directory of registered tools cannot be used: %w", err).WithPath(s.dir)
}

// keep makes a complete file the blob of its hash, or notes that the one that is
// there was asked for now.
func (s *Store) keep(ctx context.Context, temp, sum string) error {
	return s.locked(ctx, func() error {
		blob := s.blob(sum)
		if info, err := os.Lstat(blob); err == nil && info.Mode().IsRegular() {
			return errors.Join(os.Chtimes(blob, time.Time{}, s.now()), os.Remove(temp))
		}
		return errors.Join(os.Rename(temp, blob), diskfile.SyncDir(s.path("blobs")))
	})
}

func (s *Store) blob(sum string) string { return s.path("blobs", sum) }

// locked does the work while no other process changes the store.
func (s *Store) locked(ctx context.Context, work func() error) (err error) {
	l, err := store.LockDirectory(ctx, s.dir)
	if err != nil {
		return s.broken(err)
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	if err := work(); err != nil {
		var known *tool.Error
		if errors.As(err, &known) {
			return err
		}
		return s.broken(err)
	}
	return nil
}

// Blob is the file of a module or source. One that is not there is
// [tool.EnvironmentLost]: whoever needs it had it once.
func (s *Store) Blob(sum string) (string, error) {
	if !profile.IsSum(sum) {
		return "", tool.Errorf(tool.Internal, "%q is not a SHA-256", sum)
	}
	info, err := os.Lstat(s.blob(sum))
	if err != nil || !info.Mode().IsRegular() {
		return "", tool.Errorf(tool.EnvironmentLost, "the file sha256:%s is not in %s any more", sum, s.path("blobs")).
			WithHint("Register the tool again from the same file, or open a new session.")
	}
	return s.blob(sum), nil
}

// Path is where the file of a module or source is, or was.
func (s *Store) Path(sum string) string { return s.blob(sum) }

// Hold keeps a blob from being swept for the next hour, and fails like Blob.
func (s *Store) Hold(ctx context.Context, sum string) error {
	return s.locked(ctx, func() error {
		file, err := s.Blob(sum)
		if err != nil {
			return err
		}
		return os.Chtimes(file, time.Time{}, s.now())
	})
}

// Register makes p, whose module is in the store, one of the registered ones,
// instead of one of the same name. A tool that another one has already is
// [tool.InvalidParams].
func (s *Store) Register(ctx context.Context, p Plugin) error {
	if err := profile.CheckName(p.Name); err != nil {
		return tool.Errorf(tool.InvalidParams, "%q cannot be the name of a registered tool: it must begin with a letter or digit and hold at most 64 letters, digits, _ . and -", p.Name).
			WithPath("name")
	}
	raw, err := json.MarshalIndent(record{format, p}, "", "  ")
	if err != nil {
		return s.broken(err)
	}
	return s.locked(ctx, func() error {
		if _, err := s.Blob(p.SHA256); err != nil {
			return err
		}
		others, err := s.List()
		if err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(o Plugin) bool { return o.Name == p.Name })
		if len(others) >= maxNames {
			return tool.Errorf(tool.InvalidParams, "%d tools are registered, and more cannot be", len(others)).
				WithHint("Remove one with \"caisson tools remove\".")
		}
		if err := Distinct(append(others, p)); err != nil {
			return err
		}
		return diskfile.WriteFile(s.record(p.Name), append(raw, '\n'), 0o600)
	})
}

// Distinct says, as [tool.InvalidParams], which tool two plugins have.
func Distinct(all []Plugin) error {
	owner := map[string]string{}
	for _, p := range all {
		for _, t := range p.Tools {
			if o, taken := owner[t.Name]; taken {
				return tool.Errorf(tool.InvalidParams, "%q and %q both have a tool called %s", o, p.Name, t.Name).
					WithHint("Remove one of them, or change the name in its list.")
			}
			owner[t.Name] = p.Name
		}
	}
	return nil
}

func (s *Store) record(name string) string { return s.path("names", name+".json") }

// List are the registered plugins with their tools, by name. A record that is
// torn or somebody else's fails it.
func (s *Store) List() ([]Plugin, error) {
	entries, err := os.ReadDir(s.path("names"))
	if err != nil {
		return nil, s.broken(err)
	}
	var all []Plugin
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".json")
		if !is || profile.CheckName(name) != nil {
			continue // a temporary file
		}
		p, err := s.load(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed just now
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (s *Store) load(name string) (Plugin, error) {
	var r record
	if err := readJSON(s.record(name), &r); err != nil {
		return r.Plugin, err
	}
	if r.Format != format || r.Name != name || !profile.IsSum(r.SHA256) {
		return r.Plugin, s.foreign(s.record(name), errors.New("it is not a record of this version"))
	}
	tools, err := s.listing(r.SHA256)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r.Plugin, err
	}
	r.Tools = tools
	return r.Plugin, nil
}

func (s *Store) foreign(file string, err error) error {
	return tool.Errorf(tool.Internal, "%s cannot be used: %w", file, err).WithPath(file).
		WithHint("Remove the file, and register the tool again.")
}

// readJSON reads a record. One that cannot be decoded is [tool.Internal].
func readJSON(file string, v any) error {
	foreign := tool.Errorf(tool.Internal, "%s is not a record of at most %d bytes", file, maxRecord).WithPath(file)
	f, info, err := diskfile.Open(file)
	if errors.Is(err, diskfile.ErrNotRegular) {
		return foreign
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > maxRecord {
		return foreign
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return tool.Errorf(tool.Internal, "%s cannot be used: %w", file, err).WithPath(file).
			WithHint("Remove the file, and register the tool again.")
	}
	return nil
}

// Find is the registered plugin of the name, or [tool.ToolNotFound].
func (s *Store) Find(name string) (Plugin, error) {
	if profile.CheckName(name) == nil {
		p, err := s.load(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	err := tool.Errorf(tool.ToolNotFound, "no tool is registered as %q", name)
	all, listErr := s.List()
	if listErr != nil {
		return Plugin{}, listErr
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	if near := tool.Nearest(name, names); near != "" {
		return Plugin{}, err.WithHint("Did you mean %q?", near)
	}
	return Plugin{}, err.WithHint("\"caisson tools list\" lists those that are.")
}

// Remove forgets a registered plugin. Its module stays until Sweep.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.locked(ctx, func() error {
		if _, err := s.Find(name); err != nil {
			return err
		}
		return errors.Join(os.Remove(s.record(name)), diskfile.SyncDir(s.path("names")))
	})
}

// Sweep removes the modules, sources and listings that no name has, that needed
// does not hold, and that nobody asked for within the last hour.
func (s *Store) Sweep(ctx context.Context, needed map[string]bool) error {
	return s.locked(ctx, func() error {
		named, err := s.List()
		if err != nil {
			return err
		}
		stays := func(sum string) bool {
			return needed[sum] || slices.ContainsFunc(named, func(p Plugin) bool { return p.SHA256 == sum })
		}
		var errs []error
		for _, dir := range []string{"blobs", "listings"} {
			entries, err := os.ReadDir(s.path(dir))
			if err != nil {
				return err
			}
			for _, e := range entries {
				info, err := e.Info()
				if err != nil || stays(strings.TrimSuffix(e.Name(), ".json")) || s.now().Sub(info.ModTime()) < youth {
					continue
				}
				errs = append(errs, os.Remove(s.path(dir, e.Name())))
			}
			errs = append(errs, diskfile.SyncDir(s.path(dir)))
		}
		return errors.Join(errs...)
	})
}
