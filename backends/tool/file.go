package tool

import "time"

// MaxFileBytes is the most that one read of a file for people returns, and the
// most that one write of any kind takes, in bytes.
const MaxFileBytes = 16 << 20

// FileInfo describes one entry. Name and Path are written as tools write them:
// what is not valid UTF-8 stands as "bytes:" and percent-encoding.
type FileInfo struct {
	Name    string    `json:"name"`
	Path    string    `json:"path"`
	Type    string    `json:"type"` // file, directory, symlink, other
	Size    int64     `json:"size"`
	Mode    string    `json:"mode"` // as "0644"
	ModTime time.Time `json:"mtime"`
}
