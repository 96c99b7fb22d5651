// Package artifacts keeps what agents present to people: immutable files on
// the host, stored once per content and listed per session, with previews.
//
// It knows nothing of environments, sessions or protocols: bytes come in as a
// stream and a session is a name. Two service processes may share a store.
//
// On disk, under the directory of the store:
//
//	blobs/<sha256>            the content, mode 0400, one file per content
//	index/<session>/<key>     one JSON record per published artifact
//	tmp/                      contents that are still arriving
//	lock                      held while records and blobs are tied or untied
//
// The index is the only truth about what is referenced: a blob without a
// record is left over from a crash and goes with the next [Store.Expire].
package artifacts

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits, in bytes.
const (
	// MaxSize is the largest artifact. It bounds what one tool call can make
	// the host store; the far end refuses larger snapshots by the same figure.
	MaxSize = 256 << 20
	// MaxRead is the most that one [Store.Read] returns: in base64 it stays
	// well below what one message to an editor may hold.
	MaxRead = 16 << 20
	// DefaultPreviewBytes and MaxPreviewBytes bound the text or data of a
	// preview. A preview is pushed to the editor unasked, so it stays small.
	DefaultPreviewBytes = 256 << 10
	MaxPreviewBytes     = 4 << 20
	// maxName bounds a name, so that a URI stays usable.
	maxName = 255
	// maxSource bounds the source path and the profile's name together: twice
	// the longest path of Linux.
	maxSource = 8 << 10
	// maxRecord bounds the record of one artifact: all of the above, escaped.
	maxRecord = 64 << 10
)

// The errors that callers tell apart, matched with [errors.Is].
var (
	// ErrNotFound is an artifact, or a content, that is not in the store.
	ErrNotFound = errors.New("no such artifact")
	// ErrTooLarge is a content over [MaxSize].
	ErrTooLarge = fmt.Errorf("artifacts hold at most %d MiB", MaxSize>>20)
	// ErrSize is a stream that is shorter or longer than was declared.
	ErrSize = errors.New("the content is not of the declared size")
	// ErrExists is a host file that Save was not told to replace.
	ErrExists = errors.New("the file exists already")
	// ErrInvalid is a name, session, id, URI or path that cannot be one.
	ErrInvalid = errors.New("invalid artifact reference")
	// ErrBusy is a store whose lock another process held for too long.
	ErrBusy = errors.New("the artifact store is locked by another process")
)

// Artifact describes one published artifact. Content and description never
// change; publishing the same content under the same name in the same session
// again renews CreatedAt and Source.
type Artifact struct {
	// ID names the content: "sha256:" and 64 hex digits.
	ID        string    `json:"id"`
	SessionID string    `json:"sessionId"`
	Name      string    `json:"name"`
	MediaType string    `json:"mediaType"` // without parameters
	Size      int64     `json:"size"`      // bytes
	CreatedAt time.Time `json:"createdAt"`
	Source    Source    `json:"source"`
	// URI names this publication: caisson-artifact:/<session>/<id>/<name>,
	// session and name percent-encoded.
	URI string `json:"uri"`
}

// Source says where an artifact came from.
type Source struct {
	Path    string `json:"path"` // inside the environment
	Profile string `json:"profile"`
}

// scheme begins the URI of every artifact.
const scheme = "caisson-artifact:/"

// idPrefix begins the id of every content.
const idPrefix = "sha256:"

// digest returns the hex digits of an id, or [ErrInvalid].
func digest(id string) (string, error) {
	sum, ok := strings.CutPrefix(id, idPrefix)
	if !ok || !isHex64(sum) {
		return "", fmt.Errorf("%w: %q is not %s and 64 hex digits", ErrInvalid, id, idPrefix)
	}
	return sum, nil
}

// isHex64 reports whether s has the form of a SHA-256, as files of content are called.
func isHex64(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// artifactURI builds the URI of a publication.
func artifactURI(session, id, name string) string {
	return scheme + url.PathEscape(session) + "/" + id + "/" + url.PathEscape(name)
}

// ParseURI splits the URI of an artifact; anything else is [ErrInvalid].
func ParseURI(uri string) (session, id, name string, err error) {
	bad := func() (string, string, string, error) {
		return "", "", "", fmt.Errorf("%w: %q is not %s<session>/<id>/<name>", ErrInvalid, uri, scheme)
	}
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return bad()
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return bad()
	}
	if session, err = url.PathUnescape(parts[0]); err != nil {
		return bad()
	}
	if name, err = url.PathUnescape(parts[2]); err != nil {
		return bad()
	}
	if _, err = digest(parts[1]); err != nil || checkSession(session) != nil || checkName(name) != nil {
		return bad()
	}
	return session, parts[1], name, nil
}

// checkSession accepts what can be one directory name on every platform.
func checkSession(session string) error {
	if session == "" || session == "." || session == ".." || len(session) > maxName ||
		!utf8.ValidString(session) || strings.ContainsFunc(session, func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune(`/\:*?"<>|`, r)
	}) {
		return fmt.Errorf("%w: %q cannot be a session", ErrInvalid, session)
	}
	return nil
}

// checkName accepts a base name. It is never used as a path here, but whoever
// saves an artifact will propose it as one.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > maxName ||
		!utf8.ValidString(name) || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: %q cannot be the name of an artifact", ErrInvalid, name)
	}
	return nil
}
