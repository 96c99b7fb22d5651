package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
)

type readArgs struct {
	Path         string `json:"path" required:""`
	Offset       *int64 `json:"offset"`
	Limit        *int64 `json:"limit"`
	Continuation string `json:"continuation"`
	Encoding     string `json:"encoding"`
	ByteOffset   *int64 `json:"byte_offset"`
	ByteLimit    *int64 `json:"byte_limit"`
}

// readResult is a page of text, in the order in which its members are written.
type readResult struct {
	Path    string
	Content []byte
	// ContentSHA256 is of the whole file, as write_file and edit_file tell it;
	// left out for a long file of which only a part was read.
	ContentSHA256 string
	StartLine     int64
	NumLines      int64
	TotalLines    *int64 // left out where they were not counted
	Truncated     bool
	// Continuation reads the next page.
	Continuation string
	// Lossy says that bytes which are no text stand as U+FFFD.
	Lossy bool
	// Encoding is what the file is written in, for one that is in UTF-16 with a
	// byte order mark, which the content leaves out; empty for UTF-8.
	Encoding string
}

// bytesResult is a page of bytes.
type bytesResult struct {
	Path          string `json:"path"`
	Content       string `json:"content"`
	Encoding      string `json:"encoding"`
	ContentSHA256 string `json:"content_sha256,omitempty"`
	ByteOffset    int64  `json:"byte_offset"`
	NumBytes      int64  `json:"num_bytes"`
	Size          int64  `json:"size"`
	Truncated     bool   `json:"truncated"`
	Continuation  string `json:"continuation,omitempty"`
}

// imageResult goes with an image part.
type imageResult struct {
	Path          string `json:"path"`
	MIMEType      string `json:"mime_type"`
	Size          int64  `json:"size"`
	ContentSHA256 string `json:"content_sha256"`
}

// reading is one open file that is being read.
type reading struct {
	ctx    context.Context
	file   io.ReaderAt
	info   fs.FileInfo
	path   string // as results give it
	after  *position
	buffer *[sniffBytes]byte // one of heads, nil for none
	// whole is the file when its head is all of it, which is then read once.
	whole []byte
	// encoding is that of a text in UTF-16.
	encoding wide.Encoding
}

func (s *Set) readFile(ctx context.Context, c *call, a readArgs) (tool.Result, error) {
	if err := a.check(); err != nil {
		return tool.Result{}, err
	}
	name, err := s.o.Root.Name(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	// A name that leads through no link is guarded by its letters alone.
	if c.mode == tool.Unconfined || guarded(name) == "" {
		if f, ok := s.o.Root.OpenPlain(name); ok {
			defer f.Close()
			return s.readOpen(c, a, &reading{ctx: ctx, file: f, info: f, path: s.o.Root.Format(name)})
		}
	}
	if name, err = s.fileName(c, a.Path); err != nil {
		return tool.Result{}, err
	}
	f, info, err := s.o.Root.Open(name)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	return s.readOpen(c, a, &reading{ctx: ctx, file: f, info: info, path: s.o.Root.Format(name)})
}

// heads are buffers for the beginnings of files. What is read into one is copied
// before the call ends.
var heads = sync.Pool{New: func() any { return new([sniffBytes]byte) }}

// readOpen reads what has been opened.
func (s *Set) readOpen(c *call, a readArgs, r *reading) (tool.Result, error) {
	defer func() {
		if r.buffer != nil {
			heads.Put(r.buffer)
		}
	}()
	if r.info.IsDir() {
		return tool.Result{}, refuse("%q is a directory; list_files lists it", r.path)
	}
	if a.Continuation != "" {
		var err error
		if r.after, err = parsePosition(a.Continuation, r.info); err != nil {
			return tool.Result{}, err
		}
	}
	if a.Encoding == "base64" {
		return r.bytes(a, s.limit(c, maxReadBytes))
	}
	head, err := r.head()
	if err != nil {
		return tool.Result{}, err
	}
	if mime := imageType(head); mime != "" && a.Offset == nil && a.Limit == nil {
		return r.image(mime)
	}
	r.encoding = wideText(head)
	if r.encoding == wide.None && binary(head) {
		return tool.Result{}, refuse("%q is a binary file of %d bytes; read it with encoding base64, byte_offset and byte_limit, or with a command", r.path, r.info.Size())
	}
	limit := defaultReadBytes
	if a.Limit != nil {
		limit = maxReadBytes
	}
	return r.text(a, s.limit(c, limit))
}

func (a *readArgs) check() error {
	switch {
	case a.Encoding != "" && a.Encoding != "utf8" && a.Encoding != "base64":
		return refuse("encoding is %q; it must be utf8 or base64", a.Encoding)
	case a.Encoding == "base64" && (a.Offset != nil || a.Limit != nil):
		return refuse("offset and limit count lines; with encoding base64 give byte_offset and byte_limit")
	case a.Encoding != "base64" && (a.ByteOffset != nil || a.ByteLimit != nil):
		return refuse("byte_offset and byte_limit need encoding base64")
	case a.Continuation != "" && (a.Offset != nil || a.ByteOffset != nil):
		return refuse("a continuation goes on where its page ended; leave the offset out")
	}
	return errors.Join(
		between("offset", a.Offset, 1, maxOffset),
		between("limit", a.Limit, 1, maxOffset),
		between("byte_offset", a.ByteOffset, 0, maxOffset),
		between("byte_limit", a.ByteLimit, 1, maxOffset))
}

// head is the beginning of the file.
func (r *reading) head() ([]byte, error) {
	r.buffer = heads.Get().(*[sniffBytes]byte)
	head := r.buffer[:min(sniffBytes, max(r.info.Size()+1, 512))]
	n, err := r.file.ReadAt(head, 0)
	head = head[:n]
	if errors.Is(err, io.EOF) {
		r.whole, err = head, nil
	}
	return head, err
}

// imageType tells the kinds of images that models can see by how they begin.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

func (r *reading) image(mime string) (tool.Result, error) {
	if r.info.Size() > maxImageBytes {
		return tool.Result{}, refuse("the image %q has %d bytes, at most %d can be shown; make a smaller copy of it", r.path, r.info.Size(), maxImageBytes)
	}
	data, err := io.ReadAll(io.NewSectionReader(r.file, 0, maxImageBytes+1))
	if err != nil {
		return tool.Result{}, err
	}
	if len(data) > maxImageBytes {
		return tool.Result{}, refuse("the image %q grows while it is read", r.path)
	}
	sum := sha256.Sum256(data)
	res, err := result(imageResult{r.path, mime, int64(len(data)), hex.EncodeToString(sum[:])})
	res.Content = []tool.Part{{Type: tool.PartImage, Data: base64.StdEncoding.EncodeToString(data), MIMEType: mime}}
	return res, err
}

// bytes reads a range of bytes.
func (r *reading) bytes(a readArgs, limit int) (tool.Result, error) {
	// Base64 is what the result's limit counts.
	limit = min(limit, maxEncoded/4*3)
	if a.ByteLimit != nil {
		limit = int(min(int64(limit), *a.ByteLimit))
	}
	res := bytesResult{Path: r.path, Encoding: "base64", Size: r.info.Size(), ByteOffset: or(a.ByteOffset, 0)}
	if r.after != nil {
		res.ByteOffset, res.ContentSHA256 = r.after.offset, r.after.sum
	}
	data := make([]byte, min(int64(limit), max(0, r.info.Size()-res.ByteOffset)))
	n, err := r.file.ReadAt(data, res.ByteOffset)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, err
	}
	res.Content, res.NumBytes = base64.StdEncoding.EncodeToString(data[:n]), int64(n)
	if r.after == nil && r.info.Size() <= maxHashed {
		sum := sha256.New()
		if err := r.each(0, func(b []byte) bool { sum.Write(b); return true }); err != nil {
			return tool.Result{}, err
		}
		res.ContentSHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	if end := res.ByteOffset + res.NumBytes; end < r.info.Size() {
		res.Truncated = true
		res.Continuation = newPosition(r.info, 0, end, nil, res.ContentSHA256).String()
	}
	return result(res)
}

// each calls f for pieces of the file from offset on, until it returns false.
func (r *reading) each(offset int64, f func([]byte) bool) error {
	if offset == 0 && r.whole != nil {
		if len(r.whole) > 0 {
			f(r.whole)
		}
		return nil
	}
	buffer := make([]byte, min(readChunk, max(r.info.Size()-offset+1, 512)))
	for {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		n, err := r.file.ReadAt(buffer, offset)
		offset += int64(n)
		if n > 0 && !f(buffer[:n]) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// text reads lines.
func (r *reading) text(a readArgs, limit int) (tool.Result, error) {
	p := lines{
		from: or(a.Offset, 1), want: or(a.Limit, defaultReadLines), room: limit, line: 1,
		count: r.info.Size() <= maxCounted, stays: r.whole != nil && r.encoding == wide.None,
	}
	var start int64
	if r.after != nil {
		// The first page has counted and hashed.
		start, p.line, p.from, p.count = r.after.offset, r.after.line, r.after.line, false
	} else if r.info.Size() <= maxHashed {
		p.sum = sha256.New()
	}
	p.offset = start
	if err := r.lines(&p); err != nil {
		return tool.Result{}, err
	}
	return r.page(&p)
}

// lines gives p the text from its offset on, and its hash the bytes.
func (r *reading) lines(p *lines) error {
	hashed := func(b []byte) []byte {
		if p.sum != nil {
			p.sum.Write(b)
		}
		return b
	}
	if r.encoding == wide.None {
		return r.each(p.offset, func(b []byte) bool { return p.take(hashed(b)) })
	}
	start, mark, more := p.offset, 0, true
	if start == 0 {
		mark = wide.MarkSize
	}
	p.wide, p.offset = true, start+int64(mark)
	decoder := wide.Decoder{Encoding: r.encoding}
	var text []byte
	err := r.each(start, func(b []byte) bool {
		text = decoder.Append(text[:0], hashed(b)[mark:])
		mark, more = 0, p.take(text)
		return more
	})
	if err == nil && more {
		p.take(decoder.End(text[:0]))
	}
	return err
}

// page makes the result of the lines that were read.
func (r *reading) page(p *lines) (tool.Result, error) {
	if n := fit(p.content, maxEncoded); n < len(p.content) {
		p.content, p.cut = p.content[:n], true
	}
	if n := whole(p.content); p.cut && n > 0 {
		p.content = p.content[:n] // a piece of the stream ended inside of a character
	}
	res := readResult{Path: r.path, Content: p.content, StartLine: p.from, Truncated: p.cut, Encoding: r.encoding.String()}
	if res.Lossy = !utf8.Valid(p.content); res.Lossy {
		res.Content = bytes.ToValidUTF8(p.content, []byte("\ufffd"))
	}
	newlines := int64(bytes.Count(p.content, newline))
	res.NumLines = newlines
	if n := len(p.content); n > 0 && p.content[n-1] != '\n' {
		res.NumLines++
	}
	if r.after != nil {
		res.TotalLines, res.ContentSHA256 = r.after.total, r.after.sum
	} else if total, ok := p.total(); ok {
		res.TotalLines = &total
		if p.sum != nil {
			res.ContentSHA256 = hex.EncodeToString(p.sum.Sum(nil))
		}
	}
	if p.cut {
		res.Continuation = newPosition(r.info, p.from+newlines, p.start+p.size(p.content), res.TotalLines, res.ContentSHA256).String()
	}
	if res.NumLines == 0 && p.from > 1 && r.after == nil {
		if res.TotalLines != nil {
			return tool.Result{}, refuse("offset is %d, but %q has %d lines", p.from, r.path, *res.TotalLines)
		}
		return tool.Result{}, refuse("offset is %d, which is after the last line of %q", p.from, r.path)
	}
	return res.result()
}

// result encodes the page. It does so by hand: an encoder would copy the text
// three times.
func (p *readResult) result() (tool.Result, error) {
	dst := make([]byte, 0, len(p.Path)+len(p.Content)+len(p.Content)/16+len(p.ContentSHA256)+len(p.Continuation)+pageMembers)
	dst = quoted(append(dst, `{"path":`...), []byte(p.Path))
	dst = quoted(append(dst, `,"content":`...), p.Content)
	if p.ContentSHA256 != "" {
		dst = quoted(append(dst, `,"content_sha256":`...), []byte(p.ContentSHA256))
	}
	dst = strconv.AppendInt(append(dst, `,"start_line":`...), p.StartLine, 10)
	dst = strconv.AppendInt(append(dst, `,"num_lines":`...), p.NumLines, 10)
	if p.TotalLines != nil {
		dst = strconv.AppendInt(append(dst, `,"total_lines":`...), *p.TotalLines, 10)
	}
	dst = strconv.AppendBool(append(dst, `,"truncated":`...), p.Truncated)
	if p.Continuation != "" {
		dst = quoted(append(dst, `,"continuation":`...), []byte(p.Continuation))
	}
	if p.Lossy {
		dst = append(dst, `,"lossy":true`...)
	}
	if p.Encoding != "" {
		dst = quoted(append(dst, `,"encoding":`...), []byte(p.Encoding))
	}
	return tool.Result{StructuredContent: append(dst, '}')}, nil
}

// pageMembers is about what the members of a page take beside their texts, in
// bytes.
const pageMembers = 256
