package artifacts

// Kind is how a preview is best shown.
type Kind string

// The kinds.
const (
	KindText     Kind = "text"
	KindImage    Kind = "image"
	KindMarkdown Kind = "markdown"
	KindJSON     Kind = "json"
	KindCSV      Kind = "csv" // comma or tab separated, as the media type says
	KindBinary   Kind = "binary"
)

// Preview is a bounded look at a content.
type Preview struct {
	Kind      Kind   `json:"kind"`
	MediaType string `json:"mediaType"`
	// Text is the content as UTF-8, for every kind but image and binary.
	Text string `json:"text,omitempty"`
	// Encoding is what Text was decoded from: utf-8, utf-16le, utf-16be,
	// iso-8859-1 or windows-1252. A byte order mark is not part of Text.
	Encoding string `json:"encoding,omitempty"`
	// Data is the whole image, when it fits.
	Data []byte `json:"data,omitempty"`
	// Width and Height are the image's, in pixels; 0 when its header is broken.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Truncated says that Text ends early, on a character boundary, or that
	// Data was left out.
	Truncated bool `json:"truncated"`
}

// Preview makes a preview of the content id. maxBytes bounds Text and Data; 0
// is [DefaultPreviewBytes], more than [MaxPreviewBytes] is that.
func (s *Store) Preview(id string, maxBytes int64) (Preview, error) { panic("unwritten") }
