// Package config reads the user's and the project's configuration files to
// validated values. It is strict and fails closed: nothing unknown, doubled or
// clashing passes, and every error names its place in the file.
package config

import (
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
)

// Defaults of what the file leaves out, and the most that it may say.
const (
	DefaultMaxRetries   = 3
	DefaultRetryBackoff = 200 * time.Millisecond
	DefaultKeep         = 720 * time.Hour
	// DefaultConfirmTimeout is how long a person has to answer.
	DefaultConfirmTimeout = 2 * time.Minute

	// maxOutputBytes is what a tool result can hold inline.
	maxOutputBytes = 2 << 20
	// SourceMark stands for a pack's source in its command.
	SourceMark = "${source}"

	// maxRetries keeps an environment that cannot be reached from holding a
	// caller for ever: the waits double.
	maxRetries = 10
)

// Config is a validated user configuration.
type Config struct {
	// Default is the profile of sessions that name none: "local" or one of Profiles.
	Default string
	// Overrides are in the order of writing.
	Overrides []Override
	// Profiles are in the order of writing; "local" is not among them.
	Profiles  []NamedProfile
	Execution Execution
	Guard     Guard
	Tools     Tools
	// Keep is how long artifacts are kept.
	Keep time.Duration
	// ProjectProfiles are the profiles that a project may choose.
	ProjectProfiles []string
}

// NamedProfile is one profile of the file.
type NamedProfile struct {
	Name    string
	Profile profile.Profile
	// Problem is why Profile is not usable; it is then zero but for its name.
	Problem *Error
}

// Override sends the tools that match a glob over "group.tool" to a profile.
type Override struct {
	Pattern string
	Profile string
}

// Execution is the limits of every call.
type Execution struct {
	Timeout        time.Duration
	MaxOutputBytes int64
	MaxRetries     int
	RetryBackoff   time.Duration
}

// Guard is what may run at all.
type Guard struct {
	Rules          []Rule
	Rate           Rate
	Budget         Budget
	ConfirmTimeout time.Duration
}

// Empty reports whether the guard has nothing to enforce.
func (g Guard) Empty() bool {
	return len(g.Rules) == 0 && g.Rate == Rate{} && g.Budget == Budget{}
}

// Rule decides about the calls that it matches.
type Rule struct {
	Tools  []string          // globs over "group.tool"
	Match  map[string]string // globs over arguments by name
	Actors []string          // empty means all
	Action string            // allow, confirm, deny
	Reason string
}

// Rate is how many calls a session may make; its zero value means any number.
type Rate struct {
	CallsPerMinute int
	Burst          int
}

// Budget is how much a session may use in all; zero members mean any amount.
type Budget struct {
	MaxCalls       int64
	MaxRuntime     time.Duration
	MaxOutputBytes int64
}

// Tools are the tools beside the built-in ones.
type Tools struct {
	Plugins []Plugin
	Packs   []Pack
}

// Plugin is a WebAssembly tool.
type Plugin struct {
	Name string
	// WASM is an absolute path of the host, or "sha256:" and 64 hex digits.
	WASM    string
	Profile string // a wasm profile, or "" for the built-in settings
}

// Pack is an executable inside environments that offers tools.
type Pack struct {
	Name     string
	Command  []string
	Source   string // a host file, or ""
	Profiles []string
}

// Profile finds the profile of the name, "local" included.
func (c *Config) Profile(name string) (profile.Profile, bool) {
	if name == profile.Local {
		return c.Local(), true
	}
	for _, p := range c.Profiles {
		if p.Name == name && p.Problem == nil {
			return p.Profile, true
		}
	}
	return profile.Profile{}, false
}

// Local is the built-in profile.
func (c *Config) Local() profile.Profile { return profile.BuiltIn(c.defaults()) }

// Modules is the built-in profile of registered tools that name none.
func (c *Config) Modules() profile.Profile { return profile.BuiltInModules(c.defaults()) }

func (c *Config) defaults() profile.Defaults {
	return profile.Defaults{Timeout: c.Execution.Timeout, MaxOutputBytes: c.Execution.MaxOutputBytes}
}

// Names are the names of all profiles, "local" first.
func (c *Config) Names() []string {
	names := []string{profile.Local}
	for _, p := range c.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// Empty is the configuration of a machine without a file.
func Empty() *Config {
	return &Config{
		Default: profile.Local,
		Execution: Execution{
			Timeout:        profile.DefaultTimeout,
			MaxOutputBytes: profile.DefaultMaxOutputBytes,
			MaxRetries:     DefaultMaxRetries,
			RetryBackoff:   DefaultRetryBackoff,
		},
		Guard: Guard{ConfirmTimeout: DefaultConfirmTimeout},
		Keep:  DefaultKeep,
	}
}

// Source is where the user's configuration comes from.
type Source interface {
	// Load reads it, as [Load] does.
	Load() (*Config, error)
	// Path is the file that Load reads, for messages and for watching; "" for none.
	Path() string
}

// File is the [Source] that reads the file of this path.
type File string

// Load reads the file.
func (f File) Load() (*Config, error) { return Load(string(f)) }

// Path is the file's path.
func (f File) Path() string { return string(f) }

// NamedFile is [File] for a file that somebody named: that it is not there is an
// error, since sessions would silently be local without it.
type NamedFile string

// Load reads the file.
func (f NamedFile) Load() (*Config, error) {
	d, err := read(string(f))
	if err == nil && d == nil {
		err = &Error{File: string(f), Message: "the file is not there"}
	}
	if err != nil {
		return Empty(), err
	}
	return load(d)
}

// Path is the file's path.
func (f NamedFile) Path() string { return string(f) }

// Error is one problem of a configuration file.
type Error struct {
	File string
	// Line and Column, from 1, are where the member stands; 0 when the file as
	// a whole is meant. Column counts characters.
	Line, Column int
	// Path is the member, as in execution_environments.profiles.box.image.
	Path    string
	Message string
	// Suggestion is the nearest known name for an unknown one, or "".
	Suggestion string
	// Hint says what to do next where that is not to correct the file, or is "".
	Hint string
}

func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	if e.Path != "" {
		s += ": " + e.Path
	}
	s += ": " + e.Message
	if e.Suggestion != "" {
		s += fmt.Sprintf(" (did you mean %q?)", e.Suggestion)
	}
	return s
}
