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

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

type writeArgs struct {
	Path       string  `json:"path" required:""`
	Content    *string `json:"content" required:""`
	CreateOnly bool    `json:"create_only"`
	Encoding   string  `json:"encoding"`
}

// writeResult tells what a write or an edit did.
type writeResult struct {
	Path         string `json:"path"`
	WrittenBytes int    `json:"written_bytes"`
	// OldFileSHA is left out for a file that was not there.
	OldFileSHA string `json:"old_file_sha,omitempty"`
	NewFileSHA string `json:"new_file_sha"`
	// Diff is a unified diff; empty for binary files and for long changes.
	Diff          string `json:"diff"`
	DiffTruncated bool   `json:"diff_truncated,omitzero"`
	Created       bool   `json:"created,omitzero"`
	Replacements  int    `json:"replacements,omitzero"`
	// Encoding is what the file is written in now, where that is UTF-16.
	Encoding string `json:"encoding,omitempty"`
}

func (s *Set) writeFile(ctx context.Context, c *call, a writeArgs) (tool.Result, error) {
	if err := c.mayWrite(); err != nil {
		return tool.Result{}, err
	}
	data, err := a.data()
	if err != nil {
		return tool.Result{}, err
	}
	name, err := s.fileName(c, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer s.lock(name)()
	var old previous
	if !a.CreateOnly {
		if old, err = s.previous(ctx, name); err != nil {
			return tool.Result{}, err
		}
	}
	if ctx.Err() != nil {
		return tool.Result{}, ended(ctx)
	}
	if _, err := s.o.Root.Write(name, data, workspace.WriteOptions{CreateOnly: a.CreateOnly}); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return tool.Result{}, refuse("%q exists already, and create_only was asked for", s.o.Root.Format(name))
		}
		return tool.Result{}, err
	}
	return s.written(name, old, data, 0)
}

// data is the content to write.
func (a *writeArgs) data() ([]byte, error) {
	var data []byte
	switch a.Encoding {
	case "", "utf8":
		data = []byte(*a.Content)
	case "base64":
		if base64.StdEncoding.DecodedLen(len(*a.Content)) > tool.MaxFileBytes+3 {
			return nil, tooLarge(base64.StdEncoding.DecodedLen(len(*a.Content)))
		}
		var err error
		if data, err = base64.StdEncoding.DecodeString(*a.Content); err != nil {
			return nil, refuse("content is not base64: %v", err)
		}
	default:
		return nil, refuse("encoding is %q; it must be utf8 or base64", a.Encoding)
	}
	if len(data) > tool.MaxFileBytes {
		return nil, tooLarge(len(data))
	}
	return data, nil
}

func tooLarge(n int) error {
	return refuse("the content has %d bytes, and one call writes at most %d (16 MiB); nothing was written. Write it in parts with a command, or make it there", n, tool.MaxFileBytes)
}

// previous is what a file held before it is overwritten.
type previous struct {
	exists  bool
	sum     string
	content []byte // nil for a file that is too long for a diff
	known   bool   // content is the whole file
}

// previous reads a file that is about to be overwritten.
func (s *Set) previous(ctx context.Context, name string) (previous, error) {
	f, info, err := s.o.Root.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return previous{known: true}, nil
	case errors.Is(err, fs.ErrPermission):
		// A file that may be written but not read: there is nothing to tell.
		return previous{exists: true}, nil
	case err != nil:
		return previous{}, err
	}
	defer f.Close()
	if info.IsDir() {
		return previous{}, refuse("%q is a directory", s.o.Root.Format(name))
	}
	p := previous{exists: true}
	sum := sha256.New()
	if info.Size() <= maxDiffInput {
		if p.content, err = io.ReadAll(io.LimitReader(f, maxDiffInput)); err != nil {
			return previous{}, err
		}
		p.known = true
		sum.Write(p.content)
	} else {
		r := reading{ctx: ctx, file: f, info: info}
		if err := r.each(0, func(b []byte) bool { sum.Write(b); return true }); err != nil {
			return previous{}, err
		}
	}
	p.sum = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// written makes the result of a write or an edit.
func (s *Set) written(name string, old previous, data []byte, replacements int) (tool.Result, error) {
	sum := sha256.Sum256(data)
	res := writeResult{
		Path: s.o.Root.Format(name), WrittenBytes: len(data), OldFileSHA: old.sum,
		NewFileSHA: hex.EncodeToString(sum[:]), Created: !old.exists, Replacements: replacements,
	}
	before, _, isText := textOf(old.content)
	after, encoding, remains := textOf(data)
	res.Encoding = encoding.String()
	if old.known && isText && remains {
		res.Diff, res.DiffTruncated = unified(res.Path, before, after)
	}
	return result(res)
}

// textOf is the text that content is, decoded where it is in UTF-16.
func textOf(content []byte) (text []byte, e wide.Encoding, ok bool) {
	if e = wideText(content); e != wide.None {
		return e.Decode(content), e, true
	}
	return content, wide.None, !binary(content)
}

// wideText is the encoding of a text in UTF-16 with a byte order mark, by how it
// begins; [wide.None] for all else, and for what would have a NUL in its text.
func wideText(head []byte) wide.Encoding {
	e := wide.Detect(head)
	if e == wide.None || binary(e.Decode(head[:min(len(head), sniffBytes)])) {
		return wide.None
	}
	return e
}

// binary reports whether content is not text.
func binary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), sniffBytes)], 0) >= 0
}
