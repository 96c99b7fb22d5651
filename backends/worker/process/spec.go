package process

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

// defaultPath is where programs are looked for when the environment of
// commands has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// spec is all that a start needs, checked.
type spec struct {
	path     string // of the program
	member   string // of the request, which named it
	argv     []string
	env      []string
	dir      string
	launcher *confine.Launcher
	tty      *tool.TTY
	input    bool        // a pipe for stdin instead of the end of the file
	streams  []*streamTo // one for stdout and stderr merged, or one each
}

// request is what both kinds of start ask for.
type request struct {
	line string
	argv []string
	dir  string
	env  []string
	license
	tty *tool.TTY
}

// prepare checks r for the process of the id, except for its mode's launcher.
func (m *Manager) prepare(id string, r request) (spec, error) {
	var s spec
	if (r.line == "") == (len(r.argv) == 0) {
		return s, tool.Errorf(tool.InvalidParams, "a command needs either a shell line or an argument list").WithPath("command")
	}
	if r.line == "" && r.argv[0] == "" {
		return s, tool.Errorf(tool.InvalidParams, "the argument list begins with an empty name of a program").WithPath("argv")
	}
	for _, arg := range r.argv {
		if strings.Contains(arg, "\x00") {
			return s, tool.Errorf(tool.InvalidParams, "%q holds a NUL byte, which no argument can", arg).WithPath("argv")
		}
	}
	dir, err := m.directory(r)
	if err != nil {
		return s, err
	}
	s.dir, s.tty = dir, r.tty
	s.env = m.environment(id, r, dir)
	if r.line == "" {
		s.argv, s.member = r.argv, "argv"
		s.path, err = lookPath(r.argv[0], s.env, dir)
		return s, err
	}
	if len(r.line) > maxLine {
		return s, tool.Errorf(tool.InvalidParams, "the shell line has %d bytes, and the system takes %d", len(r.line), maxLine).
			WithPath("command").WithHint("write the script into a file and run that")
	}
	if s.path, err = m.shell(); err != nil {
		return s, err
	}
	s.argv, s.member = []string{filepath.Base(s.path), "-c", r.line}, "command"
	return s, nil
}

// shell is the path of the shell.
func (m *Manager) shell() (string, error) {
	for _, path := range m.shells {
		if executable(path) == nil {
			return path, nil
		}
	}
	return "", tool.Errorf(tool.Unsupported, "this environment has no shell: there is no %s", strings.Join(m.shells, " and no ")).
		WithHint("run programs by argument list, or use an image that has a shell")
}

// otherCWD is the hint of a working directory that is none.
const otherCWD = "name a directory of the workspace that is there, or leave cwd out to work in the workspace itself"

// directory is the working directory that r names: in the workspace, links
// resolved, or the command's own.
func (m *Manager) directory(r request) (string, error) {
	dir := r.dir
	switch {
	case dir == "" && r.place != nil:
		return r.place.Work, nil
	case dir == "" || dir == m.o.Root:
		return m.o.Root, nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(m.o.Root, dir)
	}
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", tool.Errorf(tool.InvalidParams, "the working directory %q cannot be used: %w", dir, cause(err)).WithPath("cwd").WithHint(otherCWD)
	}
	if rel, err := filepath.Rel(m.o.Root, target); err != nil || !filepath.IsLocal(rel) {
		return "", tool.Errorf(tool.PathOutsideRoot, "the working directory %q is outside the workspace %s", dir, m.o.Root).WithPath(dir)
	}
	info, err := os.Stat(target)
	if err != nil || !info.IsDir() {
		return "", tool.Errorf(tool.InvalidParams, "the working directory %q is not a directory", dir).WithPath("cwd").WithHint(otherCWD)
	}
	// The system would refuse the start, and blame the program.
	if _, err := os.Stat(target + "/."); errors.Is(err, fs.ErrPermission) {
		return "", tool.Errorf(tool.InvalidParams, "the working directory %q may not be entered: %w", dir, fs.ErrPermission).WithPath("cwd").WithHint(otherCWD)
	}
	return target, nil
}

// environment is the whole environment of a command. Later ones win.
func (m *Manager) environment(id string, r request, dir string) []string {
	env := make([]string, 0, len(m.o.Env)+len(r.env)+4)
	env = append(env, "PWD="+dir) // a value of the user's would be of another place
	for _, kv := range m.o.Env {
		if !strings.HasPrefix(kv, "PWD=") {
			env = append(env, kv)
		}
	}
	if r.tty != nil {
		env = append(env, "TERM=xterm-256color")
		if i := slices.IndexFunc(m.o.Env, isTerm); i >= 0 && m.o.Env[i] != "TERM=dumb" {
			env[len(env)-1] = m.o.Env[i]
		}
	}
	env = append(env, "TMPDIR="+m.tempDir(r.license))
	env = append(env, r.env...)
	env = append(env, mark+"="+m.instance+"/"+id)
	return lastOnes(env)
}

func isTerm(kv string) bool { return strings.HasPrefix(kv, "TERM=") }

// lastOnes leaves out what a later entry of the same name replaces: which one
// a program would see is not defined.
func lastOnes(env []string) []string {
	last := make(map[string]int, len(env))
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	if len(last) == len(env) {
		return env
	}
	out := env[:0]
	for _, i := range slices.Sorted(maps.Values(last)) {
		out = append(out, env[i])
	}
	return out
}

// pairs are the variables of env as "NAME=value", sorted. A name that would set
// another variable than it says is refused.
func pairs(env map[string]string) ([]string, error) {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, tool.Errorf(tool.InvalidParams, "%q cannot be the name of a variable", name).WithPath("environment")
		}
		if strings.Contains(env[name], "\x00") {
			return nil, tool.Errorf(tool.InvalidParams, "the value of %q holds a NUL byte", name).WithPath("environment")
		}
		out = append(out, name+"="+env[name])
	}
	return out, nil
}

// lookPath finds a program as the command itself would: by the PATH of env, a
// name with a slash from dir on.
func lookPath(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, name)
		}
		return path, notRunnable(name, executable(path))
	}
	search := defaultPath
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	err := fs.ErrNotExist
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, name)
		e := executable(path)
		if e == nil {
			return path, nil
		}
		// A directory that may not be looked into says nothing of the program.
		if _, unseen := errors.AsType[*fs.PathError](e); !unseen {
			err = e
		}
	}
	return "", notRunnable(name, err)
}

// cause is why a path cannot be used, without the path, which is told already.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func notRunnable(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return tool.Errorf(tool.Unsupported, "this environment has no program %q", name).WithPath(name).
			WithHint("name a program that is on the PATH there, give its whole path, or install it")
	default:
		return tool.Errorf(tool.InvalidParams, "%q cannot be run: %w", name, cause(err)).WithPath("argv").
			WithHint("make it executable, or name the program that runs it before it")
	}
}

// executable is nil for a file that may be run.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}
