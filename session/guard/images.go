package guard

import (
	"encoding/json"
	"slices"
	"strings"
)

// builds are the words behind programs for containers by which they build an image.
var builds = []string{"build", "bud", "b"}

// instructions of a description of an image run what stands behind them, when it is built or
// when it is run.
var instructions = []string{"RUN", "CMD", "ENTRYPOINT"}

// image follows what is run to build an image that the line itself describes.
func (w *walker) image(sh *shell, args []field, stdin string) {
	list := named(args, "-f", "--file")
	if len(list) == 0 {
		for _, a := range args {
			switch {
			case a.text == "-":
				list = append(list, a)
			case !strings.HasPrefix(a.text, "-"):
				list = append(list, literal([]string{a.text + "/Dockerfile", a.text + "/Containerfile"})...)
			}
		}
	}
	for _, f := range list {
		text := w.file(sh, f, stdin)
		if open(text) && (known(f.text) || f.output != nil) {
			w.give("build", "it runs what a description says that is only known then")
			continue
		}
		w.described(sh, text)
	}
}

// described follows the instructions of a description.
func (w *walker) described(sh *shell, text string) {
	if strings.HasPrefix(text, copied) || open(text) {
		return
	}
	lines := strings.Split(strings.NewReplacer("\\\r\n", " ", "\\\n", " ", "\r\n", "\n").Replace(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		word, rest, _ := strings.Cut(line, " ")
		for slices.Contains([]string{"ONBUILD", "HEALTHCHECK"}, strings.ToUpper(word)) {
			if rest = withoutFlags(rest); rest == "" {
				break
			}
			word, rest, _ = strings.Cut(rest, " ")
		}
		if !slices.Contains(instructions, strings.ToUpper(word)) {
			continue
		}
		rest = withoutFlags(rest)
		inner := newShell("") // of the image
		inner.depth = sh.depth + 1
		var argv []string
		listed := json.Unmarshal([]byte(rest), &argv) == nil
		if words := slices.Concat(argv, strings.Fields(rest)); len(words) > 0 && isShell(called(words[0])) &&
			!slices.ContainsFunc(words[1:], func(word string) bool {
				return !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "[") && !strings.HasSuffix(word, "]")
			}) {
			continue // for whoever runs the image
		}
		if listed {
			w.run(inner, literal(argv), unread)
			continue
		}
		if _, mark, ok := strings.Cut(rest, "<<"); ok { // a text up to a line that ends it
			end := strings.Trim(strings.Fields(mark + " .")[0], `-"'`)
			var body strings.Builder
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != end; i++ {
				body.WriteString(lines[i] + "\n")
			}
			if strings.HasPrefix(rest, "<<") {
				rest = body.String()
			} else {
				rest += "\n" + body.String() + end
			}
		}
		w.code(inner, rest, unread)
	}
}

// withoutFlags is the text behind flags such as --mount=….
func withoutFlags(text string) string {
	text = strings.TrimLeft(text, " \t")
	for strings.HasPrefix(text, "--") {
		_, text, _ = strings.Cut(text, " ")
		text = strings.TrimLeft(text, " \t")
	}
	return text
}
