package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// position is where a page of a file ended, with what is known of the file, so
// that the next page starts there at once. It travels as the continuation, an
// opaque string.
type position struct {
	line, offset int64
	size, mtime  int64  // of the file, to notice that it changed
	total        *int64 // lines, if they were counted
	sum          string // hash of the file, if it was made
}

func newPosition(info fs.FileInfo, line, offset int64, total *int64, sum string) position {
	return position{line, offset, info.Size(), info.ModTime().UnixNano(), total, sum}
}

// String is the continuation.
func (p position) String() string {
	total := int64(-1)
	if p.total != nil {
		total = *p.total
	}
	return fmt.Sprintf("c1.%x.%x.%x.%x.%d.%s", p.line, p.offset, p.size, p.mtime, total, p.sum)
}

// parsePosition reads a continuation of the file that info describes.
func parsePosition(s string, info fs.FileInfo) (*position, error) {
	var p position
	var total int64
	rest, sum, ok := cutLast(s)
	n, err := fmt.Sscanf(rest, "c1.%x.%x.%x.%x.%d", &p.line, &p.offset, &p.size, &p.mtime, &total)
	if !ok || err != nil || n != 5 || p.line < 0 || p.offset < 0 || p.offset > p.size || !hexSum(sum) {
		return nil, refuse("the continuation %.40q is not one that read_file gave", s)
	}
	if p.size != info.Size() || p.mtime != info.ModTime().UnixNano() {
		return nil, refuse("the file was changed since the page that this continuation goes on from; read it again from the beginning")
	}
	if total >= 0 {
		p.total = &total
	}
	p.sum = sum
	return &p, nil
}

// hexSum reports whether s can be a hash, or none.
func hexSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && (len(b) == 0 || len(b) == sha256.Size)
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
