package guard

import (
	"slices"
	"strconv"
	"strings"
)

// filtered is what is printed by programs that pass on some of the lines that they read.
// A line that loses its neighbours may be another command than it was among them, and so
// may a part of a line. So what cannot be followed exactly may be anything as well.
func filtered(sh *shell, program string, words []string, stdin string) string {
	flags, files := operands(program, words)
	if program == "rg" || strings.HasSuffix(program, "grep") && slices.ContainsFunc(flags, func(s string) bool {
		return !strings.HasPrefix(s, "--") && strings.ContainsAny(s, "lL")
	}) {
		return "./" + string(outside)
	}
	if strings.HasSuffix(program, "grep") && len(files) > 0 {
		files = files[1:] // behind the pattern
	}
	text := stdin
	if len(files) > 0 {
		text = ""
		for _, f := range files {
			part := sh.content(f)
			switch {
			case f == "-":
				part = stdin
			case part == string(outside):
				part = string(anything) // now it is what is in it that counts
			}
			if text += part; len(text) > maxText {
				break
			}
		}
		text = limited(text)
	}
	if program == "cat" || text == unread {
		return text
	}
	trimmed := strings.TrimSuffix(text, "\n")
	if whole(program, flags) && !strings.Contains(trimmed, "\n") {
		return text
	}
	if list := strings.Split(trimmed, "\n"); known(text) {
		switch {
		case program == "tac" && len(flags) == 0:
			slices.Reverse(list)
			return strings.Join(list, "\n") + "\n"
		case program == "sort" && len(flags) == 0:
			slices.Sort(list)
			return strings.Join(list, "\n") + "\n"
		case program == "uniq" && len(flags) == 0:
			return strings.Join(slices.Compact(list), "\n") + "\n"
		case program == "head" || program == "tail":
			n, ok := count(flags)
			if !ok {
				break
			}
			if n = min(n, len(list)); program == "head" {
				return strings.Join(list[:n], "\n") + "\n"
			}
			return strings.Join(list[len(list)-n:], "\n") + "\n"
		}
	}
	return doubtful(text)
}

// doubtful is a text that may be another one.
func doubtful(text string) string { return limited(string(anything) + "\n" + text) }

// operands takes the words of a filter apart: its flags with their values, and the rest.
func operands(program string, words []string) (flags, files []string) {
	values := map[string]string{"head": "nc", "tail": "nc", "sort": "kt", "grep": "ABCm", "egrep": "ABCm", "fgrep": "ABCm", "uniq": "fsw"}[program]
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			return flags, append(files, words[i+1:]...)
		case word == "-" || !strings.HasPrefix(word, "-"):
			files = append(files, word)
			continue
		case len(word) == 2 && strings.Contains(values, word[1:]) && i+1 < len(words):
			i++
			word += words[i]
		}
		flags = append(flags, word)
	}
	return flags, files
}

// whole reports whether a filter with these flags passes on whole lines, as they are.
func whole(program string, flags []string) bool {
	for _, f := range flags {
		letters := strings.TrimLeft(f, "-")
		switch {
		case strings.HasSuffix(program, "grep"):
			if strings.HasPrefix(f, "--") || strings.Trim(letters, "ivwxEFPGqhsa") != "" {
				return false
			}
		case program == "head" || program == "tail":
			if strings.Trim(letters, "nq0123456789") != "" {
				return false
			}
		case strings.HasPrefix(f, "--") || strings.ContainsAny(letters, "coze"):
			return false
		}
	}
	return true
}

// count is how many lines head and tail pass on.
func count(flags []string) (int, bool) {
	if len(flags) == 0 {
		return 10, true
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(flags[0], "-"), "n"))
	return n, len(flags) == 1 && err == nil && n >= 0
}
