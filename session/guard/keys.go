package guard

import (
	"slices"
	"strings"
	"unicode"
)

// keyed are the commands of what is written to a process. It is a line only where a shell
// reads it, and is looked at as if one did: as it is written, which is what a pipe passes
// on, and as a terminal would; as a whole, and each line by itself, since a shell goes on
// behind one that it cannot parse. What is none is no command.
func keyed(input string, e *effort) (found []command) {
	if len(input) > maxLine {
		return []command{opaque("what is typed, "+sizeOf(len(input)), "it is longer than what is looked at")}
	}
	look := func(text string) {
		if w := newWalker(e); w.code(newShell(""), text, unread) {
			w.uncalled()
			found = append(found, w.found...)
		}
	}
	texts := []string{input}
	edited, sure := terminalText(input)
	if edited != input {
		texts = append(texts, edited)
	}
	if !sure {
		found = append(found, opaque("what is typed", "keys in it move within a line or fetch an earlier one"))
	}
	spent := e.spent
	for _, text := range texts {
		look(text)
		lines := strings.SplitN(text, "\n", maxTurns)
		for _, line := range lines {
			if len(lines) > 1 {
				look(line)
			}
			// Editors, debuggers and clients give a shell what stands behind it.
			if code, ok := strings.CutPrefix(strings.TrimLeft(line, ` :\r`), "!"); ok {
				look(code)
			}
		}
		w := newWalker(e)
		w.calls(newShell(""), language{}, text) // an interpreter may read it
		found = append(found, w.found...)
	}
	if e.spent && !spent { // which may have been noted among what is no command
		found = append(found, opaque("what is typed", "it does more than what is followed"))
	}
	return found
}

// terminalText is the text that comes of keys: the line discipline ends a line at a return,
// and takes back what is erased. Keys that move the cursor are no text, and sure is false
// where they stand in a line with text, or where a line is fetched from those of before.
func terminalText(keys string) (text string, sure bool) {
	var done strings.Builder
	var line []rune
	moved := false
	sure = true
	runes := []rune(keys)
	for i := 0; i < len(runes); i++ {
		sure = sure && (!moved || len(line) == 0)
		switch r := runes[i]; {
		case r == '\r', r == '\n', r == 0x04: // the end of input ends a line as well
			done.WriteString(string(line) + "\n")
			line, moved = line[:0], false
		case r == 0x03, r == 0x15, r == 0x1a, r == 0x1c: // interrupt, kill, suspend, quit
			line = line[:0]
		case r == 0x08, r == 0x7f:
			line = line[:max(0, len(line)-1)]
		case r == 0x17: // erases a word
			text := strings.TrimRightFunc(string(line), unicode.IsSpace)
			line = []rune(text[:strings.LastIndexFunc(text, unicode.IsSpace)+1])
		case r == 0x0f, r == 0x10, r == 0x12: // runs, fetches, looks for an earlier line
			sure = false
		case r == 0x01, r == 0x02, r == 0x06, r == 0x0e, r == 0x14, r == 0x19: // moves, fetches, swaps
			moved = true
		case r == 0x1b:
			end := afterEscape(runes, i)
			moved = moved || end > i && !slices.Contains([]rune{'~', 'R'}, runes[end]) // pasted text and reports move nothing
			i = end
		case r >= ' ', r == '\t':
			line = append(line, r)
		}
	}
	return done.String() + string(line), sure && (!moved || len(line) == 0)
}

// afterEscape is where the escape sequence that begins at i ends.
func afterEscape(runes []rune, i int) int {
	if i+1 >= len(runes) || !slices.Contains([]rune{'[', 'O'}, runes[i+1]) {
		return i
	}
	for i += 2; i < len(runes); i++ {
		if runes[i] >= '@' && runes[i] <= '~' {
			return i
		}
	}
	return i
}
