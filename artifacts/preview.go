package artifacts

import (
	"errors"
	"fmt"
	"io"
)

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

// Preview makes a preview of the content id, for the name under which it was
// published last. maxBytes bounds Text and Data; 0 or less is
// [DefaultPreviewBytes], more than [MaxPreviewBytes] is that.
func (s *Store) Preview(id string, maxBytes int64) (Preview, error) {
	a, err := s.Find(id)
	if err != nil {
		return Preview{}, err
	}
	return s.PreviewOf(a, maxBytes)
}

// PreviewOf is [Store.Preview] for an artifact that the caller has at hand: it
// looks nothing up but the content.
func (s *Store) PreviewOf(a Artifact, maxBytes int64) (Preview, error) {
	if maxBytes <= 0 {
		maxBytes = DefaultPreviewBytes
	}
	maxBytes = min(maxBytes, MaxPreviewBytes)
	c, err := s.OpenContent(a.ID)
	if err != nil {
		return Preview{}, err
	}
	p, err := preview(c, a.Name, maxBytes)
	if err := errors.Join(err, c.Close()); err != nil {
		return Preview{}, fmt.Errorf("%s cannot be previewed: %w", a.ID, err)
	}
	return p, nil
}

func preview(c Content, name string, maxBytes int64) (Preview, error) {
	head, err := readHead(c, sniffLen)
	if err != nil {
		return Preview{}, err
	}
	f := detect(name, head, c.Size())
	p := Preview{Kind: f.kind, MediaType: f.mediaType}
	switch f.kind {
	case KindBinary:
		p.Truncated = c.Size() > 0
	case KindImage:
		p.Width, p.Height = imageSize(f.mediaType, c)
		if p.Truncated = c.Size() > maxBytes; !p.Truncated {
			p.Data, err = readHead(c, maxBytes)
		}
	default:
		err = p.readText(c, f, maxBytes)
	}
	return p, err
}

// readText fills in the text. Twice the bytes that may be shown, and a mark, are
// enough: only UTF-16 shrinks when it becomes UTF-8, by half at most. What is
// cut at their end lies behind what is shown.
func (p *Preview) readText(c Content, f format, maxBytes int64) error {
	raw, err := readHead(c, 2*maxBytes+4)
	if err != nil {
		return err
	}
	whole := int64(len(raw)) == c.Size()
	// What the head did not show may show now: a text that is UTF-8 for its
	// first 64 KiB and Latin-1 further down. A NUL further down is U+FFFD.
	if enc, ok := detectEncoding(raw, whole); ok {
		f.encoding = enc
	}
	text, err := f.encoding.decode(raw)
	if err != nil {
		return err
	}
	p.Text = cut(text, int(maxBytes))
	p.Encoding = string(f.encoding)
	p.Truncated = !whole || len(p.Text) < len(text)
	return nil
}

// readHead reads the first n bytes, or all there are.
func readHead(c Content, n int64) ([]byte, error) {
	head := make([]byte, min(n, c.Size()))
	if k, err := c.ReadAt(head, 0); k < len(head) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return head, nil
}
