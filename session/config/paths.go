package config

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// Paths are where the service finds and keeps things.
type Paths struct {
	Config  string // the user's file
	Named   bool   // whether somebody named that file, rather than it being the default
	State   string // bindings and environments
	Data    string // artifacts
	Runtime string // sockets; short, since a socket's path holds 108 bytes
}

// Source is the user's configuration: the default file may be missing, a named
// one may not.
func (p Paths) Source() Source {
	if p.Named {
		return NamedFile(p.Config)
	}
	return File(p.Config)
}

// DefaultPaths finds the platform's directories. $CAISSON_CONFIG names the
// user's file; the XDG variables are heeded on every system but Windows.
// Without HOME, as in a service that a system has started, it is what the system says
// of the user.
func DefaultPaths() (Paths, error) {
	return pathsFor(runtime.GOOS, func(name string) string {
		value := os.Getenv(name)
		if name == "HOME" && value == "" {
			if u, err := user.Current(); err == nil {
				value = u.HomeDir
			}
		}
		return value
	}, os.Getuid())
}

func pathsFor(goos string, getenv func(string) string, uid int) (Paths, error) {
	home := getenv("HOME")
	if goos == "windows" {
		home = getenv("USERPROFILE")
	}
	if !filepath.IsAbs(home) && (goos != "windows" || home == "") {
		return Paths{}, errors.New("the home directory is not known: HOME must be an absolute path")
	}
	// dir is the directory that a variable names, else the one below home. A
	// relative path in a variable counts as none, as the XDG specification says.
	dir := func(variable string, below ...string) string {
		if d := getenv(variable); d != "" && (filepath.IsAbs(d) || goos == "windows") {
			return filepath.Join(d, "caisson")
		}
		return filepath.Join(append(append([]string{home}, below...), "caisson")...)
	}
	var p Paths
	switch goos {
	case "windows":
		p.Config = filepath.Join(dir("APPDATA", "AppData", "Roaming"), "config.json")
		local := dir("LOCALAPPDATA", "AppData", "Local")
		p.State, p.Data, p.Runtime = filepath.Join(local, "state"), filepath.Join(local, "data"), filepath.Join(local, "run")
	case "darwin":
		support := []string{"Library", "Application Support"}
		p.Config = filepath.Join(dir("XDG_CONFIG_HOME", support...), "config.json")
		p.State = filepath.Join(dir("XDG_STATE_HOME", support...), "state")
		p.Data = filepath.Join(dir("XDG_DATA_HOME", support...), "data")
	default:
		p.Config = filepath.Join(dir("XDG_CONFIG_HOME", ".config"), "config.json")
		p.State = dir("XDG_STATE_HOME", ".local", "state")
		p.Data = dir("XDG_DATA_HOME", ".local", "share")
	}
	if p.Runtime == "" {
		p.Runtime = filepath.Join("/tmp", fmt.Sprintf("caisson-%d", uid))
		if d := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) {
			p.Runtime = filepath.Join(d, "caisson")
		}
	}
	if file := getenv("CAISSON_CONFIG"); file != "" {
		abs, err := filepath.Abs(file)
		if err != nil {
			return Paths{}, fmt.Errorf("CAISSON_CONFIG: %w", err)
		}
		p.Config, p.Named = abs, true
	}
	return p, nil
}
