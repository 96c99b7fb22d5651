package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

type editArgs struct {
	Path       string  `json:"path" required:""`
	OldText    *string `json:"old_text" required:""`
	NewText    *string `json:"new_text" required:""`
	ReplaceAll bool    `json:"replace_all"`
}

func (s *Set) editFile(ctx context.Context, c *call, a editArgs) (tool.Result, error) {
	if err := c.mayWrite(); err != nil {
		return tool.Result{}, err
	}
	switch {
	case *a.OldText == "":
		return tool.Result{}, refuse("old_text is empty; write_file makes a new file or replaces a whole one")
	case *a.OldText == *a.NewText:
		return tool.Result{}, refuse("old_text and new_text are the same; there is nothing to change")
	case len(*a.NewText) > tool.MaxFileBytes:
		return tool.Result{}, tooLarge(len(*a.NewText))
	}
	name, err := s.fileName(c, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer s.lock(name)()
	for try := 1; ; try++ {
		res, err := s.editOnce(ctx, name, a)
		if !errors.Is(err, workspace.ErrChanged) || try == editTries {
			return res, err
		}
	}
}

// editOnce edits the file as it is now, unless somebody changes it meanwhile.
func (s *Set) editOnce(ctx context.Context, name string, a editArgs) (tool.Result, error) {
	f, info, err := s.o.Root.Open(name)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	path := s.o.Root.Format(name)
	switch {
	case info.IsDir():
		return tool.Result{}, refuse("%q is a directory", path)
	case info.Size() > maxEditBytes:
		return tool.Result{}, refuse("%q has %d bytes, and files of at most %d can be edited; use a command", path, info.Size(), maxEditBytes)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err != nil {
		return tool.Result{}, err
	}
	text, encoding, _ := textOf(content)
	e := newEdit(text, *a.OldText, *a.NewText)
	switch {
	case len(e.matches) == 0:
		return tool.Result{}, e.missing(path)
	case len(e.matches) > 1 && !a.ReplaceAll:
		return tool.Result{}, e.ambiguous(path)
	}
	data := e.apply()
	if encoding != wide.None {
		data = encoding.Encode(data)
	}
	if len(data) > maxEditBytes {
		return tool.Result{}, refuse("%q would have %d bytes, and files of at most %d can be edited; nothing was changed", path, len(data), maxEditBytes)
	}
	if ctx.Err() != nil {
		return tool.Result{}, ended(ctx)
	}
	if _, err := s.o.Root.Write(name, data, workspace.WriteOptions{Seen: info}); err != nil {
		return tool.Result{}, err
	}
	sum := sha256.Sum256(content)
	old := previous{exists: true, known: true, content: content, sum: hex.EncodeToString(sum[:])}
	return s.written(name, old, data, len(e.matches))
}

// edit replaces text in a file byte by byte: what it does not name stays as it
// is, whatever the file's line endings are.
type edit struct {
	content  []byte
	old, new string
	// loose says that a "\n" of old stands for "\r\n" too and that one of new is
	// written as the lines around it end. It holds where neither text
	// has a carriage return: then nobody has named the endings.
	loose   bool
	matches []span
}

// span is a range of bytes.
type span struct{ start, end int }

func newEdit(content []byte, old, replacement string) *edit {
	e := &edit{content: content, old: old, new: replacement}
	e.loose = !strings.Contains(old, "\r") && !strings.Contains(replacement, "\r") && bytes.Contains(content, []byte("\r\n"))
	for at := 0; ; {
		m, ok := e.find(at)
		if !ok {
			return e
		}
		e.matches = append(e.matches, m)
		at = m.end
	}
}

// find returns the first match that begins at or after from.
func (e *edit) find(from int) (span, bool) {
	if !e.loose || !strings.Contains(e.old, "\n") {
		i := bytes.Index(e.content[from:], []byte(e.old))
		return span{from + i, from + i + len(e.old)}, i >= 0
	}
	// The first line is looked for quickly, the rest is compared there. An old
	// text that begins with a newline begins at either byte of a "\r\n".
	first, _, _ := strings.Cut(e.old, "\n")
	for from <= len(e.content) {
		i := bytes.Index(e.content[from:], []byte(first))
		if first == "" {
			if i = bytes.IndexByte(e.content[from:], '\n'); i > 0 && e.content[from+i-1] == '\r' {
				i--
			}
		}
		if i < 0 {
			break
		}
		start := from + i
		if end, ok := e.matchAt(start); ok {
			return span{start, end}, true
		}
		if from = start + 1; first == "" && start+1 < len(e.content) && e.content[start] == '\r' {
			from++
		}
	}
	return span{}, false
}

// matchAt compares the old text with what stands at start.
func (e *edit) matchAt(start int) (end int, ok bool) {
	return advance(e.content, start, e.old)
}

// advance goes over text in content, where each "\n" of it may be "\r\n".
func advance(content []byte, at int, text string) (int, bool) {
	for i := range len(text) {
		if text[i] == '\n' && at+1 < len(content) && content[at] == '\r' && content[at+1] == '\n' {
			at++
		}
		if at >= len(content) || content[at] != text[i] {
			return 0, false
		}
		at++
	}
	return at, true
}

// apply returns the new content.
func (e *edit) apply() []byte {
	// What both texts begin and end with is not touched, so that the endings of
	// these lines stay whatever they are.
	head := 0
	for head < len(e.old) && head < len(e.new) && e.old[head] == e.new[head] {
		head++
	}
	tail := 0
	for tail < len(e.old)-head && tail < len(e.new)-head && e.old[len(e.old)-1-tail] == e.new[len(e.new)-1-tail] {
		tail++
	}
	middle := e.new[head : len(e.new)-tail]

	out := make([]byte, 0, len(e.content)+len(e.matches)*max(0, len(e.new)-len(e.old)))
	done := 0
	for _, m := range e.matches {
		start, end := m.start+head, m.end-tail
		insert := middle
		if e.loose {
			start, _ = advance(e.content, m.start, e.old[:head])
			end, _ = advance(e.content, start, e.old[head:len(e.old)-tail])
			insert = strings.ReplaceAll(middle, "\n", e.ending(start))
		}
		out = append(out, e.content[done:start]...)
		out = append(out, insert...)
		done = end
	}
	return append(out, e.content[done:]...)
}

// ending is how new lines end that take the place of a range: as the first
// line in it that ends, else as the line around it, else as the one before.
func (e *edit) ending(start int) string {
	at := bytes.IndexByte(e.content[start:], '\n')
	if at >= 0 {
		at += start
	} else {
		at = bytes.LastIndexByte(e.content[:start], '\n')
	}
	if at > 0 && e.content[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// missing says why nothing matches and what stands there instead.
func (e *edit) missing(path string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "old_text is not in %q; nothing was changed.", path)
	if strings.Contains(e.old, "\r") && !bytes.Contains(e.content, []byte{'\r'}) {
		b.WriteString(" It has carriage returns and the file has none.")
	}
	if line, n := e.similar(); n > 0 {
		fmt.Fprintf(&b, " Line %d and following differ from it in white space only; they are:\n%s", n, line)
	} else if n := e.firstLine(); n > 0 {
		fmt.Fprintf(&b, " Its first line is there as line %d, but what follows is different; read the file again.", n)
	} else {
		b.WriteString(" Read the file again and copy the text exactly.")
	}
	return refusal(b.String())
}

// similar looks for lines that equal the old text but for white space.
func (e *edit) similar() (text string, line int) {
	want := strings.Split(strings.Trim(e.old, "\r\n"), "\n")
	for i := range want {
		want[i] = squeeze(want[i])
	}
	if len(want) == 1 && want[0] == "" || len(e.content) > maxDiffInput {
		return "", 0
	}
	have := bytes.Split(e.content, newline)
	squeezed := make([]string, len(have))
	for i := range have {
		squeezed[i] = squeeze(string(have[i]))
	}
	for i := 0; i+len(want) <= len(squeezed); i++ {
		j := 0
		for j < len(want) && squeezed[i+j] == want[j] {
			j++
		}
		if j == len(want) {
			found := bytes.Join(have[i:i+j], newline)
			return strings.ToValidUTF8(string(found[:character(found, 4096)]), "\ufffd"), i + 1
		}
	}
	return "", 0
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// firstLine is the number of the line that holds the first line of the old
// text.
func (e *edit) firstLine() int {
	first, _, more := strings.Cut(e.old, "\n")
	first = strings.TrimSuffix(first, "\r")
	if !more || strings.TrimSpace(first) == "" {
		return 0
	}
	i := bytes.Index(e.content, []byte(first))
	if i < 0 {
		return 0
	}
	return 1 + bytes.Count(e.content[:i], newline)
}

// ambiguous says where the old text stands.
func (e *edit) ambiguous(path string) error {
	var at []string
	line, done := 1, 0
	for _, m := range e.matches[:min(len(e.matches), maxHints)] {
		line += bytes.Count(e.content[done:m.start], newline)
		done = m.start
		at = append(at, fmt.Sprint(line))
	}
	more := ""
	if len(e.matches) > maxHints {
		more = ", …"
	}
	return refuse("old_text stands %d times in %q (lines %s%s); nothing was changed. Give more of its surroundings, or replace_all",
		len(e.matches), path, strings.Join(at, ", "), more)
}
