package protocol

import "time"

// Artifact describes one published artifact. It is immutable.
type Artifact struct {
	// ID names the content: "sha256:" and 64 hex digits.
	ID        string         `json:"id"`
	SessionID string         `json:"sessionId"`
	Name      string         `json:"name"`
	MediaType string         `json:"mediaType"`
	Size      int64          `json:"size"`
	CreatedAt time.Time      `json:"createdAt"`
	Source    ArtifactSource `json:"source"`
	// URI names this publication: caisson-artifact:/<session>/<id>/<name>.
	URI string `json:"uri"`
}

// ArtifactSource says where an artifact came from.
type ArtifactSource struct {
	Path    string `json:"path"`
	Profile string `json:"profile"`
}

// Preview is a bounded look at an artifact.
type Preview struct {
	Kind      PreviewKind `json:"kind"`
	MediaType string      `json:"mediaType"`
	// Text is the content as UTF-8, for every kind but image and binary.
	Text string `json:"text,omitzero"`
	// Encoding is what Text was decoded from, such as "utf-16le".
	Encoding string `json:"encoding,omitzero"`
	// Data is the whole image, when it fits.
	Data []byte `json:"data,omitempty"`
	// Width and Height are an image's, in pixels.
	Width  int `json:"width,omitzero"`
	Height int `json:"height,omitzero"`
	// Truncated says that Text ends early or Data was left out.
	Truncated bool `json:"truncated"`
}

// PreviewKind is how a preview is best shown.
type PreviewKind string

// The kinds of previews.
const (
	PreviewText     PreviewKind = "text"
	PreviewImage    PreviewKind = "image"
	PreviewMarkdown PreviewKind = "markdown"
	PreviewJSON     PreviewKind = "json"
	PreviewCSV      PreviewKind = "csv"
	PreviewBinary   PreviewKind = "binary"
)

// Values are all kinds of previews.
func (PreviewKind) Values() []PreviewKind {
	return []PreviewKind{PreviewText, PreviewImage, PreviewMarkdown, PreviewJSON, PreviewCSV, PreviewBinary}
}

// ArtifactPublishParams publishes a file of a session's environment.
type ArtifactPublishParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
}

// ArtifactPublished is the answer to artifact/publish, and what
// artifact/published tells.
type ArtifactPublished struct {
	Artifact Artifact `json:"artifact"`
	Preview  Preview  `json:"preview"`
}

// ArtifactListParams filters artifact/list; empty means all sessions.
type ArtifactListParams struct {
	SessionID string `json:"sessionId,omitzero"`
}

// ArtifactListResult is the answer to artifact/list, oldest first.
type ArtifactListResult struct {
	Artifacts []Artifact `json:"artifacts"`
}

// ArtifactReadParams says which bytes of a content to read.
type ArtifactReadParams struct {
	ID     string `json:"id"`
	Offset int64  `json:"offset,omitzero"`
	// Length is at most, and when missing, 16 MiB.
	Length int64 `json:"length,omitzero"`
}

// ArtifactReadResult is the answer to artifact/read.
type ArtifactReadResult struct {
	Data   []byte `json:"data"`
	Offset int64  `json:"offset"`
	EOF    bool   `json:"eof"`
}

// ArtifactPreviewParams asks for a preview of a content.
type ArtifactPreviewParams struct {
	ID string `json:"id"`
	// MaxBytes bounds the text or data; missing is 256 KiB, at most 4 MiB.
	MaxBytes int64 `json:"maxBytes,omitzero"`
}

// ArtifactSaveParams writes a content to a file of the host.
type ArtifactSaveParams struct {
	ID string `json:"id"`
	// Path is absolute, and its directory exists.
	Path string `json:"path"`
	// Overwrite replaces a file that exists.
	Overwrite bool `json:"overwrite,omitzero"`
}

// ArtifactDeleteParams removes one publication.
type ArtifactDeleteParams struct {
	URI string `json:"uri"`
}
