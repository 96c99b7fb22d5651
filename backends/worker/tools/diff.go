package tools

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// diffContext is how many equal lines stand around a change.
const diffContext = 3

// unified is a unified diff of two texts, "" when they are equal or differ
// over too much to be compared. One that is too long is cut after a line.
func unified(path string, old, data []byte) (text string, truncated bool) {
	head, tail := common(old, data)
	before, after := old[head:len(old)-tail], data[head:len(data)-tail]
	if len(before)+len(after) > 2*maxDiffInput {
		return "", true
	}
	out := diff.Diff("a/"+path, before, "b/"+path, after)
	_, out, _ = bytes.Cut(out, newline) // the line "diff a b"
	out = shift(out, bytes.Count(old[:head], newline))
	if len(out) > maxDiff {
		out = out[:bytes.LastIndexByte(out[:maxDiff], '\n')+1]
		truncated = true
	}
	return strings.ToValidUTF8(string(out), "\ufffd"), truncated
}

// common is how many bytes of two texts are the same whole lines at the
// beginning and at the end, less what a diff shows around a change.
func common(a, b []byte) (head, tail int) {
	if bytes.Equal(a, b) {
		return 0, 0
	}
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for range diffContext + 1 {
		head = bytes.LastIndexByte(a[:max(head-1, 0)], '\n') + 1
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for range diffContext + 1 {
		i := bytes.IndexByte(a[len(a)-tail:], '\n')
		if i < 0 {
			return head, 0
		}
		tail -= i + 1
	}
	return head, tail
}

// shift adds to the line numbers of a diff of the middle of two texts.
func shift(d []byte, lines int) []byte {
	if lines == 0 {
		return d
	}
	var out bytes.Buffer
	for line := range bytes.Lines(d) {
		var a, an, b, bn int
		if n, err := fmt.Sscanf(string(line), "@@ -%d,%d +%d,%d @@", &a, &an, &b, &bn); err == nil && n == 4 {
			fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", a+lines, an, b+lines, bn)
			continue
		}
		out.Write(line)
	}
	return out.Bytes()
}
