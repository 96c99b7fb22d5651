// Package config reads the user's and the project's configuration files to
// validated values. It is strict and fails closed: nothing unknown, doubled or
// clashing passes, and every error names its place in the file.
package config

import "fmt"

// Config is a validated user configuration.
type Config struct{}

// Source is where the user's configuration comes from.
type Source interface {
	// Load reads it. No file at all is the empty configuration.
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

// Load reads and validates the file. A file that does not exist is the empty
// configuration; every other failure is an [*Error].
func Load(path string) (*Config, error) { return &Config{}, nil }

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
