//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
)

// effect is what a call may have done.
type effect int

const (
	done    effect = iota // it was acknowledged
	nothing               // it was refused
	unknown               // it may have happened
)

// absent stands for the content of a file that is not there. No content
// is like it.
const absent = "\x00absent"

// file is what one file may hold. As long as every outcome is known it is one
// content.
type file struct {
	may []string
}

func newFile() *file { return &file{may: []string{absent}} }

// wrote takes note of a replacement of the whole content.
func (f *file) wrote(content string, e effect) {
	switch e {
	case done:
		f.may = []string{content}
	case unknown:
		f.add(content)
	}
}

// edited takes note of a replacement of one text, which stands once in the
// contents that it applies to. A refusal means that it did not apply.
func (f *file) edited(from, to string, e effect) error {
	var with, without, after []string
	for _, c := range f.may {
		if strings.Count(c, from) != 1 {
			without = append(without, c)
			continue
		}
		with = append(with, c)
		after = append(after, strings.Replace(c, from, to, 1))
	}
	switch {
	case e == done && len(after) == 0:
		return fmt.Errorf("an edit of what cannot be there was acknowledged: %q", from)
	case e == done:
		f.may = after
	case e == nothing && len(without) == 0:
		return fmt.Errorf("an edit was refused that applies: %q, the file may hold %s", from, heads(with))
	case e == nothing:
		f.may = without
	default:
		for _, c := range after {
			f.add(c)
		}
	}
	return nil
}

// read takes note of what was read, which must be possible.
func (f *file) read(content string) error {
	if !slices.Contains(f.may, content) {
		return fmt.Errorf("it holds %s, and may hold %s", head(content), heads(f.may))
	}
	f.may = []string{content}
	return nil
}

// there reports whether the file must and may exist.
func (f *file) there() (must, may bool) {
	gone := slices.Contains(f.may, absent)
	return !gone, !gone || len(f.may) > 1
}

func (f *file) add(content string) {
	if !slices.Contains(f.may, content) {
		f.may = append(f.may, content)
	}
}

// heads are the beginnings of contents, for messages.
func heads(contents []string) string {
	short := make([]string, len(contents))
	for i, c := range contents {
		short[i] = head(c)
	}
	return strings.Join(short, " or ")
}

func head(content string) string {
	const enough = 60
	if len(content) <= enough {
		return fmt.Sprintf("%q", content)
	}
	return fmt.Sprintf("%q… (%d bytes)", content[:enough], len(content))
}

// book is a file that commands append lines to, each of which is unlike all
// others.
type book struct {
	lines []string
	known map[string]effect // done or unknown
}

func newBook() *book { return &book{known: map[string]effect{}} }

// appended takes note of one append.
func (b *book) appended(line string, e effect) {
	if e == nothing {
		return
	}
	b.known[line] = e
	b.lines = append(b.lines, line)
}

// read checks what the file holds: every acknowledged line once and in order,
// the unknown ones at most once, and all of them whole. While commands of an
// unknown outcome may still run the order of their lines is open.
func (b *book) read(content string) error {
	if content != "" && !strings.HasSuffix(content, "\n") {
		return fmt.Errorf("the last line is cut: %q", content[strings.LastIndexByte(content, '\n')+1:])
	}
	seen := map[string]bool{}
	var certain []string
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		e, known := b.known[line]
		switch {
		case !known:
			return fmt.Errorf("nobody wrote the line %q", line)
		case seen[line]:
			return fmt.Errorf("the line %q is there twice", line)
		case e == done:
			certain = append(certain, line)
		}
		seen[line] = true
	}
	i := 0
	for _, line := range b.lines {
		if b.known[line] != done {
			continue
		}
		if i == len(certain) || certain[i] != line {
			if seen[line] {
				return fmt.Errorf("the line %q is at the wrong place", line)
			}
			return fmt.Errorf("the acknowledged line %q is not there", line)
		}
		i++
	}
	return nil
}
