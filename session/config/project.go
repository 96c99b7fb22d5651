package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/diskfile"
)

// ProjectFile is the name of a project's file, in the opened folder.
const ProjectFile = ".caisson.json"

// Project is what a project's file tightens. Its zero value tightens nothing.
type Project struct {
	// Profile is the profile that the project chose, or "".
	Profile string
	Limits  profile.Limits
	Guard   Guard // more rules, before the user's; narrower rate and budget
}

// projectFile is the file as it is written: the parts of the user's file that
// may be tightened, in the same places. The parts that may not are there to be
// refused with a reason.
type projectFile struct {
	Schema                string               `json:"$schema,omitempty"`
	ExecutionEnvironments *projectEnvironments `json:"execution_environments,omitempty"`
	Execution             *projectExecution    `json:"execution,omitempty"`
	Limits                *projectLimits       `json:"limits,omitempty"`
	Guard                 *guard               `json:"guard,omitempty"`

	Tools           jsontext.Value `json:"tools,omitempty"`
	Artifacts       jsontext.Value `json:"artifacts,omitempty"`
	ProjectProfiles jsontext.Value `json:"project_profiles,omitempty"`
}

type projectEnvironments struct {
	Default   string         `json:"default,omitempty"`
	Profiles  jsontext.Value `json:"profiles,omitempty"`
	Overrides jsontext.Value `json:"overrides,omitempty"`
}

type projectExecution struct {
	Timeout        *duration `json:"timeout,omitempty"`
	MaxOutputBytes *int64    `json:"max_output_bytes,omitempty"`
}

type projectLimits struct {
	Network     *string  `json:"network,omitempty"`
	Filesystem  *string  `json:"filesystem,omitempty"`
	CPUs        *float64 `json:"cpus,omitempty"`
	MemoryMB    *int64   `json:"memory_mb,omitempty"`
	PidsLimit   *int64   `json:"pids_limit,omitempty"`
	TmpfsNoexec *bool    `json:"tmpfs_noexec,omitempty"`
}

// LoadProject reads the project's file in the folder, for a user with the
// configuration c. No file is the empty project; every other failure is an
// [*Error]. A link is followed within the folder only, and an error tells nothing of
// what one leads to: whoever wrote the project may not be whom that belongs to.
func LoadProject(folder string, c *Config) (Project, error) {
	d, linked, err := readProject(folder)
	var p Project
	if err == nil && d != nil {
		p, err = loadProject(d, c)
	}
	switch {
	case err == nil:
		return p, nil
	case linked && err.Line > 0:
		return Project{}, &Error{File: err.File, Message: "is a link, and what it leads to is no configuration of a project", Hint: "put the file itself there, and what is wrong with it is told"}
	}
	return Project{}, err
}

// readProject parses the project's file in the folder, and says whether that is a link.
// Where there is no file it gives nil and no error.
func readProject(folder string) (d *document, linked bool, failed *Error) {
	name := filepath.Join(folder, ProjectFile)
	fail := func(format string, args ...any) (*document, bool, *Error) {
		return nil, linked, &Error{File: name, Message: fmt.Sprintf(format, args...)}
	}
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if link := dangling(folder); link != "" {
			return fail("cannot be read: the link %s leads nowhere", link)
		}
		return nil, false, nil
	}
	if err != nil {
		return fail("the folder cannot be looked into: %s", reason(err))
	}
	defer root.Close()
	there, err := root.Lstat(ProjectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return fail("%s", reason(err))
	}
	linked = there.Mode()&fs.ModeSymlink != 0
	f, opened, err := diskfile.OpenIn(root, ProjectFile)
	switch {
	case errors.Is(err, diskfile.ErrNotRegular):
		return fail("%s", reason(err))
	case linked && errors.Is(err, fs.ErrNotExist):
		return fail("cannot be read: the link %s leads nowhere", name)
	case linked && err != nil && !errors.Is(err, fs.ErrPermission):
		return fail("is a link that does not lead to a file of the folder, by a relative path, and is not followed")
	case err != nil:
		return fail("%s", reason(err))
	}
	defer f.Close()
	// One that has been replaced meanwhile may be a link now.
	if !os.SameFile(there, opened) {
		linked = true
	}
	d, failed = parseFile(name, f)
	return d, linked, failed
}

func loadProject(d *document, c *Config) (Project, *Error) {
	var f projectFile
	if err := d.decode(&f); err != nil {
		return Project{}, err
	}
	l := loader{d: d, c: Empty()}
	p := l.project(f, c)
	if l.err != nil {
		return Project{}, l.err
	}
	return p, nil
}

func (l *loader) project(f projectFile, user *Config) Project {
	l.refuse(f.Tools, at("tools"), "add tools")
	l.refuse(f.Artifacts, at("artifacts"), "decide how long artifacts are kept")
	l.refuse(f.ProjectProfiles, at("project_profiles"), "say which profiles it may choose")
	var p Project
	if e := f.ExecutionEnvironments; e != nil {
		l.refuse(e.Profiles, at("execution_environments", "profiles"), "define profiles")
		l.refuse(e.Overrides, at("execution_environments", "overrides"), "send tools to other profiles")
		if e.Default != "" {
			p.Profile = e.Default
			l.allowed(e.Default, user)
		}
	}
	if e := f.Execution; e != nil {
		l.positive(&p.Limits.Timeout, e.Timeout, at("execution", "timeout"))
		within(l, &p.Limits.MaxOutputBytes, e.MaxOutputBytes, 1, maxOutputBytes, at("execution", "max_output_bytes"))
	}
	if f.Limits != nil {
		l.limits(&p.Limits, *f.Limits)
	}
	l.guard(f.Guard)
	p.Guard = l.c.Guard
	return p
}

// refuse fails when a project wrote what only the user may.
func (l *loader) refuse(v jsontext.Value, path profile.Path, what string) {
	if v != nil {
		l.fail(path, "a project may only tighten what the user configured: it cannot %s", what)
	}
}

// allowed checks the project's choice against the user's list.
func (l *loader) allowed(name string, user *Config) {
	if slices.Contains(user.ProjectProfiles, name) {
		return
	}
	path := at("execution_environments", "default")
	if len(user.ProjectProfiles) == 0 {
		l.fail(path, "the user's project_profiles lets projects choose no profile, and this one chose %q", name)
		return
	}
	l.unknown(name, user.ProjectProfiles, path, "%q is not among the user's project_profiles", name)
}

func (l *loader) limits(to *profile.Limits, f projectLimits) {
	path := func(name string) profile.Path { return at("limits", name) }
	if f.Network != nil {
		l.word(*f.Network, path("network"), "none")
		to.Network = *f.Network
	}
	if f.Filesystem != nil {
		l.word(*f.Filesystem, path("filesystem"), "read_only")
		to.ReadOnly = true
	}
	if f.CPUs != nil {
		if *f.CPUs <= 0 {
			l.fail(path("cpus"), "must be more than 0")
		}
		to.CPUs = *f.CPUs
	}
	var mb int64
	within(l, &mb, f.MemoryMB, 1, 1<<40, path("memory_mb"))
	to.Memory = mb << 20
	within(l, &to.PidsLimit, f.PidsLimit, 1, 1<<31-1, path("pids_limit"))
	if f.TmpfsNoexec != nil && !*f.TmpfsNoexec {
		l.fail(path("tmpfs_noexec"), "a project may only tighten what the user configured: false widens")
	}
	to.TmpfsNoexec = f.TmpfsNoexec
}
