package site

import (
	"os"
	"path/filepath"
)

// executables are the directories of the programs that run, as far as this user
// may see.
func executables() (map[string]bool, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	running := map[string]bool{}
	for _, link := range links {
		// Another user's, and one that ended meanwhile, is none of ours.
		if path, err := os.Readlink(link); err == nil {
			running[filepath.Dir(path)] = true
		}
	}
	return running, nil
}

// kernel is the release of the running kernel.
func kernel() string {
	raw, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return string(raw)
}
