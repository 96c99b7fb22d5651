package protocol

import "time"

// FileParams names a file of a session's environment, as tools do.
type FileParams struct {
	SessionID string `json:"sessionId"`
	// Path is relative to the root, or absolute below it; "" is the root.
	Path string `json:"path"`
}

// FileReadParams says what fs/readFile returns.
type FileReadParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Offset    int64  `json:"offset,omitzero"`
	// Length is at most how many bytes; missing means to the end, and never
	// more than 16 MiB.
	Length *int64 `json:"length,omitzero"`
}

// FileReadResult is the answer to fs/readFile.
type FileReadResult struct {
	Data   []byte `json:"data"`
	Offset int64  `json:"offset"`
	// EOF says that the data reaches the end of the file.
	EOF bool `json:"eof"`
}

// FileWriteParams replaces a file atomically, or makes it.
type FileWriteParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	// Data is the whole content, at most 16 MiB.
	Data []byte `json:"data"`
}

// FileResult describes one file.
type FileResult struct {
	File FileInfo `json:"file"`
}

// DirectoryResult is the answer to fs/readDirectory, sorted by name.
type DirectoryResult struct {
	Entries []FileInfo `json:"entries"`
}

// FileInfo describes one entry. A name that is not valid UTF-8 stands as
// "bytes:" and percent-encoding, and is accepted that way.
type FileInfo struct {
	Name    string    `json:"name"`
	Path    string    `json:"path"`
	Type    FileType  `json:"type"`
	Size    int64     `json:"size"`
	Mode    string    `json:"mode"` // as "0644"
	ModTime time.Time `json:"mtime"`
}

// FileType is what an entry is; links are not followed.
type FileType string

// The types of files.
const (
	FileRegular   FileType = "file"
	FileDirectory FileType = "directory"
	FileSymlink   FileType = "symlink"
	FileOther     FileType = "other"
)

// Values are all types of files.
func (FileType) Values() []FileType {
	return []FileType{FileRegular, FileDirectory, FileSymlink, FileOther}
}
