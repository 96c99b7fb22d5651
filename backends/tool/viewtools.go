package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// viewFile is the content, with a note when there is more of it.
func viewFile(o object) json.RawMessage {
	token := o.token("content")
	if token == nil {
		if o.token("mime_type") == nil {
			return nil
		}
		return quote(fmt.Sprintf("[%s: %s, %d bytes]", o.text("path"), o.text("mime_type"), o.number("size")))
	}
	var notes []string
	switch start, lines := o.number("start_line"), o.number("num_lines"); {
	case o.text("encoding") == "base64":
		offset, n := o.number("byte_offset"), o.number("num_bytes")
		notes = append(notes, fmt.Sprintf("[base64 of bytes %d to %d of %d]", offset, offset+n, o.number("size")))
	case o.flag("truncated") && o.get("total_lines") != nil:
		notes = append(notes, fmt.Sprintf("[lines %d to %d of %d]", start, start+lines-1, o.number("total_lines")))
	case o.flag("truncated"):
		notes = append(notes, fmt.Sprintf("[lines %d to %d, there are more]", start, start+lines-1))
	case empty(token):
		notes = append(notes, "[the file is empty]")
	}
	if next := o.text("continuation"); next != "" {
		notes = append(notes, "[continuation: "+next+"]")
	}
	if o.flag("lossy") {
		notes = append(notes, "[bytes that are not UTF-8 are shown as \ufffd]")
	}
	return joined(token, strings.Join(notes, "\n"))
}

// viewChange is the diff, or one line about a new file.
func viewChange(o object) json.RawMessage {
	if o.get("new_file_sha") == nil {
		return nil
	}
	diff := o.token("diff")
	switch {
	case o.flag("created"):
		// Its diff is what the caller has just written.
		return quote(fmt.Sprintf("created %s (%d bytes)", oneLine(o.text("path")), o.number("written_bytes")))
	case diff != nil && !empty(diff) && o.flag("diff_truncated"):
		return joined(diff, "[the diff is cut here]")
	case diff != nil && !empty(diff):
		return diff
	case o.text("old_file_sha") == o.text("new_file_sha"):
		return quote(fmt.Sprintf("%s holds this already (%d bytes)", oneLine(o.text("path")), o.number("written_bytes")))
	}
	return quote(fmt.Sprintf("wrote %s (%d bytes)", oneLine(o.text("path")), o.number("written_bytes")))
}

// viewCommand is the output, then how the command ended unless it ended well.
func viewCommand(o object) json.RawMessage {
	out, errOut := o.token("stdout"), o.token("stderr")
	if out == nil || errOut == nil {
		return nil
	}
	var notes []string
	if o.flag("stdout_truncated") {
		notes = append(notes, "[stdout was longer and is cut]")
	}
	if !empty(errOut) {
		if !empty(out) {
			notes = append(notes, "[stderr]")
		}
		notes = append(notes, strings.TrimSuffix(unquote(errOut), "\n"))
	}
	if o.flag("stderr_truncated") {
		notes = append(notes, "[stderr was longer and is cut]")
	}
	id := o.text("promoted_process_id")
	switch {
	case o.flag("timed_out"):
		notes = append(notes, fmt.Sprintf("[still running after %d ms; it goes on as background process %s]", o.number("duration_ms"), id))
	case id != "":
		notes = append(notes, fmt.Sprintf("[started as background process %s]", id))
	case o.text("signal") != "":
		notes = append(notes, fmt.Sprintf("[ended by %s]", o.text("signal")))
	case o.number("exit_code") != 0:
		notes = append(notes, fmt.Sprintf("[exit code %d]", o.number("exit_code")))
	}
	if hint := o.text("hint"); hint != "" {
		notes = append(notes, "["+hint+"]")
	}
	if len(notes) == 0 && empty(out) {
		notes = append(notes, "[no output]")
	}
	return joined(out, strings.Join(notes, "\n"))
}

// viewList is a line an entry: directories end in a slash, links say where to.
func viewList(o object) json.RawMessage {
	var entries []struct {
		Name   string `json:"name"`
		IsDir  bool   `json:"is_dir"`
		Size   int64  `json:"size"`
		Type   string `json:"type"`
		Target string `json:"target"`
	}
	if !o.decode("entries", &entries) {
		return nil
	}
	var b strings.Builder
	for _, e := range entries {
		e.Name, e.Target = oneLine(e.Name), oneLine(e.Target)
		switch {
		case e.IsDir:
			fmt.Fprintf(&b, "%s/\n", e.Name)
		case e.Type == "symlink":
			fmt.Fprintf(&b, "%s -> %s\n", e.Name, e.Target)
		case e.Type != "":
			fmt.Fprintf(&b, "%s\t(%s)\n", e.Name, e.Type)
		default:
			fmt.Fprintf(&b, "%s\t%d\n", e.Name, e.Size)
		}
	}
	return o.paged(&b, "[the directory is empty]")
}

// viewPaths is a line a file.
func viewPaths(o object) json.RawMessage {
	var files []string
	if !o.decode("files", &files) {
		return nil
	}
	var b strings.Builder
	for _, f := range files {
		b.WriteString(oneLine(f) + "\n")
	}
	if len(files) == 0 && o.number("total") == 0 {
		b.WriteString("[no files match]\n")
	}
	o.unreadable(&b)
	return o.paged(&b, "")
}

// viewMatches is what grep prints: path:line:text, and path-line-text for lines
// around a match.
func viewMatches(o object) json.RawMessage {
	if o.get("total") == nil {
		return nil
	}
	var b strings.Builder
	if o.get("files") != nil {
		var files []string
		o.decode("files", &files)
		for _, f := range files {
			b.WriteString(oneLine(f) + "\n")
		}
	}
	var counts []struct {
		Path  string `json:"path"`
		Count int    `json:"count"`
	}
	o.decode("counts", &counts)
	for _, c := range counts {
		fmt.Fprintf(&b, "%s:%d\n", oneLine(c.Path), c.Count)
	}
	var lines []struct {
		Path    string `json:"path"`
		Line    int    `json:"line"`
		Text    string `json:"text"`
		Context bool   `json:"context"`
	}
	o.decode("matches", &lines)
	around := false
	for _, l := range lines {
		around = around || l.Context
	}
	for i, l := range lines {
		if around && i > 0 && (lines[i-1].Path != l.Path || lines[i-1].Line+1 != l.Line) {
			b.WriteString("--\n")
		}
		sep := ":"
		if l.Context {
			sep = "-"
		}
		fmt.Fprintf(&b, "%s%s%d%s%s\n", oneLine(l.Path), sep, l.Line, sep, l.Text)
	}
	if b.Len() == 0 && o.number("total") == 0 {
		b.WriteString("[nothing matches]\n")
	}
	if n := o.number("guarded"); n > 0 {
		fmt.Fprintf(&b, "[files that may hold secrets were not searched: %d]\n", n)
	}
	o.unreadable(&b)
	return o.paged(&b, "")
}

// unreadable tells of what a search had to leave out.
func (o object) unreadable(b *strings.Builder) {
	switch n := o.number("unreadable"); n {
	case 0:
	case 1:
		b.WriteString("[1 file or directory could not be read]\n")
	default:
		fmt.Fprintf(b, "[%d files or directories could not be read]\n", n)
	}
}

// oneLine is a path on a line of its own. A name that holds a control
// character would be taken for two lines or for more of the view: it is written
// in the other notation that tools take, "bytes:" and percent-encoding.
func oneLine(path string) string {
	if strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// paged is a view that says which part of the results it is.
func (o object) paged(b *strings.Builder, none string) json.RawMessage {
	offset, n, total := o.number("offset"), o.number("returned_count"), o.number("total")
	switch {
	case o.flag("has_more"):
		fmt.Fprintf(b, "[results %d to %d of %d; the next begin at offset %d]", offset+1, offset+n, total, offset+n)
	case n == 0 && total > 0:
		fmt.Fprintf(b, "[there are %d results, none at offset %d]", total, offset)
	case b.Len() == 0:
		b.WriteString(none)
	}
	return quote(strings.TrimSuffix(b.String(), "\n"))
}

// viewProcess is the output that was read, or a line a process.
func viewProcess(o object) json.RawMessage {
	var list []Process
	if o.decode("processes", &list) {
		if len(list) == 0 {
			return quote("[there are no background processes]")
		}
		var b strings.Builder
		for i := range list {
			b.WriteString(line(&list[i]) + "\n")
		}
		return quote(strings.TrimSuffix(b.String(), "\n"))
	}
	var p Process
	if !o.decode("process", &p) {
		return nil
	}
	out := o.token("output")
	if out == nil {
		return quote(line(&p))
	}
	end := o.number("end_offset")
	notes := fmt.Sprintf("[%s; bytes %d to %d of %d", line(&p), o.number("start_offset"), end, o.number("total_bytes"))
	if !o.flag("eof") {
		notes += fmt.Sprintf("; the next begin at offset_bytes %d", end)
	}
	notes += "]"
	if o.flag("truncated") {
		notes += "\n[earlier output is no longer kept]"
	}
	return joined(out, notes)
}

// line describes a process in one line.
func line(p *Process) string {
	status := string(p.Status)
	switch {
	case p.TerminalCause == CauseLost:
		status = "lost"
	case p.Signal != "":
		status = "ended by " + p.Signal
		if p.OOMKilled != "" {
			status += " (" + p.OOMKilled.Explain() + ")"
		}
	case p.Status.Terminal() && p.ExitCode >= 0:
		status = fmt.Sprintf("exited with code %d", p.ExitCode)
	}
	command := p.Command
	if command == "" {
		command = strings.Join(p.Argv, " ")
	}
	return fmt.Sprintf("%s %s: %s", p.ID, status, command)
}
