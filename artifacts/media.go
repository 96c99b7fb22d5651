package artifacts

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path"
	"strings"
)

// sniffLen is how much of a content its media type is told from, in bytes:
// enough for a typical JSON document to be seen whole.
const sniffLen = 64 << 10

// format is what a content turned out to be.
type format struct {
	mediaType string
	kind      Kind
	encoding  encoding // of every kind but image and binary
}

// textTypes gives the text formats that a name tells, by extension. What is
// not here is plain text: better a plain view than a wrong one.
var textTypes = map[string]format{
	".md":       {mediaType: "text/markdown", kind: KindMarkdown},
	".markdown": {mediaType: "text/markdown", kind: KindMarkdown},
	".json":     {mediaType: "application/json", kind: KindJSON},
	".geojson":  {mediaType: "application/geo+json", kind: KindJSON},
	".ipynb":    {mediaType: "application/x-ipynb+json", kind: KindJSON},
	".jsonl":    {mediaType: "application/jsonl", kind: KindText},
	".ndjson":   {mediaType: "application/x-ndjson", kind: KindText},
	".csv":      {mediaType: "text/csv", kind: KindCSV},
	".tsv":      {mediaType: "text/tab-separated-values", kind: KindCSV},
	// Text on purpose: an SVG is markup that scripts and loads, and it came out
	// of an environment that is not trusted. A client that can show it safely
	// knows it by its media type.
	".svg":  {mediaType: "image/svg+xml", kind: KindText},
	".html": {mediaType: "text/html", kind: KindText},
	".htm":  {mediaType: "text/html", kind: KindText},
	".xml":  {mediaType: "application/xml", kind: KindText},
	".yaml": {mediaType: "application/yaml", kind: KindText},
	".yml":  {mediaType: "application/yaml", kind: KindText},
	".toml": {mediaType: "application/toml", kind: KindText},
	".css":  {mediaType: "text/css", kind: KindText},
	".js":   {mediaType: "text/javascript", kind: KindText},
	".mjs":  {mediaType: "text/javascript", kind: KindText},
	".tex":  {mediaType: "application/x-tex", kind: KindText},
	".ics":  {mediaType: "text/calendar", kind: KindText},
}

// detect tells the format from the head of the content (all of it when size is
// no more than its length) and the name. The content decides between image,
// text and binary; the name only says which sort of text.
func detect(name string, head []byte, size int64) format {
	whole := int64(len(head)) == size
	if mediaType := imageType(head); mediaType != "" {
		return format{mediaType: mediaType, kind: KindImage}
	}
	enc, text := detectEncoding(head, whole)
	// A PDF may be written in printable characters, and is no text all the same.
	if !text || bytes.HasPrefix(head, []byte("%PDF-")) {
		mediaType, _, _ := strings.Cut(http.DetectContentType(head), ";")
		if strings.HasPrefix(mediaType, "text/") {
			mediaType = "application/octet-stream" // it looked at less of it than we did
		}
		return format{mediaType: mediaType, kind: KindBinary}
	}
	f, ok := textTypes[strings.ToLower(path.Ext(name))]
	switch {
	case ok:
	case whole && enc == utf8Encoding && isJSON(head):
		f = textTypes[".json"]
	case isSVG(head):
		f = textTypes[".svg"]
	default:
		f = format{mediaType: "text/plain", kind: KindText}
	}
	f.encoding = enc
	return f
}

// isJSON reports whether the text is one JSON object or array. A bare number or
// word is JSON too, but nobody means it.
func isJSON(text []byte) bool {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, bomUTF8))
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text)
}

func isSVG(text []byte) bool {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, bomUTF8))
	if bytes.HasPrefix(text, []byte("<?xml")) {
		_, rest, _ := bytes.Cut(text, []byte("?>"))
		text = bytes.TrimSpace(rest)
	}
	return bytes.HasPrefix(text, []byte("<svg"))
}
