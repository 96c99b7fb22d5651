package check

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
)

func calls() []clause {
	return []clause{
		rule(clauseToolResult, sectionExecute, "a tool result has known members and parts of known types", func(t *trial) {
			t.execute("list_files", args{}, "")
			t.execute("read_file", args{"path": "check-none"}, "")
			t.execute("grep", args{"pattern": "x"}, "")
		}),
		rule("unknown-tool", sectionExecute, "a tool that it does not have is an error", func(t *trial) {
			t.refusesTool("there is no such tool", "check_unknown", args{}, "")
		}),
		rule("arguments", sectionExecute, "arguments that are no JSON object, or of the wrong type, are refused", func(t *trial) {
			t.offers("list_files", args{}, "")
			for _, text := range []string{"{", `[]`, `"x"`} {
				data := t.call("list_files", args{}, "")
				data["call"].(args)["arguments"] = text
				c := t.outcome("list_files", t.ask("execute", data))
				t.want(c.refused != "", "arguments that are %s must be refused", text)
			}
			t.refusesTool("path is a number", "list_files", args{"path": 7}, "")
			t.refusesTool("it needs a path", "read_file", args{}, "")
		}),
		rule("mode-unknown", sectionExecute, "a permission mode that there is not is refused", func(t *trial) {
			t.offers("list_files", args{}, "")
			t.refusesTool("there is no such mode", "list_files", args{}, "check_unknown")
		}),
		rule("mode-read-only", sectionExecute, "in read_only no file is written", func(t *trial) {
			t.write("check-mode.txt", "before\n")
			t.execute("write_file", args{"path": "check-mode.txt", "content": "after\n"}, "read_only")
			t.execute("edit_file", args{"path": "check-mode.txt", "old_text": "before", "new_text": "after"}, "read_only")
			t.want(t.content("check-mode.txt") == "before\n", "in read_only the file must stay as it was")
		}),
		rule("path-outside", sectionExecute, "a path outside of the root is refused", driveOutside),
	}
}

func driveOutside(t *trial) {
	t.offers("list_files", args{}, "")
	for _, path := range []string{"..", "../x", "/", "/etc/passwd", "a/../../x"} {
		t.refusesTool(path+" is outside of the root", "read_file", args{"path": path}, "")
		t.refusesTool(path+" is outside of the root", "list_files", args{"path": path}, "")
	}
	t.refusesTool("it is outside of the root", "write_file", args{"path": "../check-escaped", "content": "x"}, "")
	if t.known.local && os.Symlink("/etc", t.peer.file("check-link")) == nil {
		defer os.Remove(t.peer.file("check-link"))
		t.refusesTool("a symlink leads outside of the root", "read_file", args{"path": "check-link/passwd"}, "")
	}
}

const (
	shapePage  = " total:number offset:number returned_count:number has_more:bool"
	shapeWrite = "path:string written_bytes:number new_file_sha:string diff:string old_file_sha?:string"
)

func files() []clause {
	return []clause{
		rule("tool-read-file", sectionExecute, "read_file", driveReadFile),
		rule("tool-write-file", sectionExecute, "write_file", driveWriteFile),
		rule("tool-edit-file", sectionExecute, "edit_file", driveEditFile),
		rule("tool-list-files", sectionExecute, "list_files", func(t *trial) {
			t.write("check-list/a.txt", "12345\n")
			a := t.tool("list_files", args{"path": "check-list"}, "path:string entries:list"+shapePage)
			t.want(a["total"] == 1.0 && a["returned_count"] == 1.0 && a["has_more"] == false && len(list(a["entries"])) == 1, "list_files of a directory with one file must have one entry: %v", a)
			entry, _ := list(a["entries"])[0].(map[string]any)
			w := wrong(entry, "name:string path:string is_dir:bool size:number mode:string mtime:string")
			t.want(w == "", "an entry of list_files: %s", w)
			t.want(entry["name"] == "a.txt" && entry["size"] == 6.0 && entry["is_dir"] == false, "the entry must be a.txt with 6 bytes: %v", entry)
		}),
		rule("tool-grep", sectionExecute, "grep", driveGrep),
		rule("tool-glob", sectionExecute, "glob", func(t *trial) {
			t.write("check-glob/a.txt", "x\n")
			a := t.tool("glob", args{"pattern": "check-glob/*.txt"}, "files:list"+shapePage)
			t.want(len(list(a["files"])) == 1 && list(a["files"])[0] == "check-glob/a.txt", "glob must find check-glob/a.txt: %v", a)
		}),
		rule(clausePresent, sectionExecute, "present_artifact", func(t *trial) {
			offer := t.present("x.txt", "content\n")
			t.want(offer["name"] == "x.txt" && offer["size"] == 8.0, "the artifact must be x.txt with 8 bytes: %v", offer)
		}),
	}
}

func driveReadFile(t *trial) {
	const text = "one\ntwo\nthree\n"
	t.write("check-read.txt", text)
	const shape = "path:string content:string content_sha256:string start_line:number num_lines:number total_lines:number truncated:bool"
	a := t.tool("read_file", args{"path": "check-read.txt"}, shape)
	t.want(a["content"] == text && a["start_line"] == 1.0 && a["num_lines"] == 3.0 && a["total_lines"] == 3.0 && a["truncated"] == false,
		"read_file of three lines must give them: %v", a)
	t.want(a["content_sha256"] == sum(text), "content_sha256 must be %s", sum(text))
	a = t.tool("read_file", args{"path": "check-read.txt", "offset": 2, "limit": 1}, shape)
	t.want(a["content"] == "two\n" && a["start_line"] == 2.0 && a["num_lines"] == 1.0 && a["total_lines"] == 3.0 && a["truncated"] == true,
		"read_file from line 2, one line, must give the second of three: %v", a)
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func driveWriteFile(t *trial) {
	path := "check-write/new.txt"
	a := t.tool("write_file", args{"path": path, "content": "first\n"}, shapeWrite)
	t.want(a["written_bytes"] == 6.0 && a["new_file_sha"] == sum("first\n"), "written_bytes and new_file_sha must be those of the content: %v", a)
	a = t.tool("write_file", args{"path": path, "content": "second\n"}, shapeWrite)
	t.want(a["old_file_sha"] == sum("first\n"), "old_file_sha must be that of what was there: %v", a)
	t.refusesTool("create_only, and the file is there", "write_file", args{"path": path, "content": "third\n", "create_only": true}, "")
	t.want(t.content(path) == "second\n", "the file must hold what was written last")
}

func driveEditFile(t *trial) {
	t.write("check-edit.txt", "a b b\n")
	a := t.tool("edit_file", args{"path": "check-edit.txt", "old_text": "a", "new_text": "c"}, shapeWrite+" replacements?:number")
	t.want(a["new_file_sha"] == sum("c b b\n"), "new_file_sha must be that of %q: %v", "c b b\n", a)
	t.refusesTool("old_text is there twice", "edit_file", args{"path": "check-edit.txt", "old_text": "b", "new_text": "d"}, "")
	t.refusesTool("old_text is not there", "edit_file", args{"path": "check-edit.txt", "old_text": "zzz", "new_text": "d"}, "")
	a = t.tool("edit_file", args{"path": "check-edit.txt", "old_text": "b", "new_text": "d", "replace_all": true}, shapeWrite+" replacements?:number")
	t.want(a["new_file_sha"] == sum("c d d\n"), "replace_all must replace both: %v", a)
}

func driveGrep(t *trial) {
	t.write("check-grep/a.txt", "needle\nhay\nneedle\n")
	for mode, member := range map[string]string{"content": "matches", "files_with_matches": "files", "count": "counts"} {
		a := t.tool("grep", args{"pattern": "need[l]e", "path": "check-grep", "output_mode": mode}, "output_mode:string "+member+":list"+shapePage)
		t.want(a["output_mode"] == mode, "output_mode must be %s: %v", mode, a)
		items := list(a[member])
		t.want(len(items) > 0, "grep must find needle: %v", a)
		switch item, _ := items[0].(map[string]any); mode {
		case "content":
			t.want(len(items) == 2 && item["path"] == "check-grep/a.txt" && item["line"] == 1.0 && item["text"] == "needle", "grep must find lines 1 and 3: %v", a)
		case "count":
			t.want(item["path"] == "check-grep/a.txt" && item["count"] == 2.0, "grep must count 2: %v", a)
		default:
			t.want(items[0] == "check-grep/a.txt", "grep must name the file: %v", a)
		}
	}
}

// present makes a file and presents it.
func (t *trial) present(name, content string) args {
	t.write("check-export/"+name, content)
	c := t.offers("present_artifact", args{"path": "check-export/" + name}, "")
	t.want(len(c.content) == 1, "present_artifact must give one text part: %s", c.raw)
	text, _ := c.content[0]["text"].(string)
	return t.object("the text of present_artifact", json.RawMessage(text), "execution_export:string name:string size:number")
}

func exports() []clause {
	return []clause{
		rule("export-read", sectionExport, "export/read gives the file, at most 256 KiB a piece, and eof with its last", func(t *trial) {
			content := strings.Repeat("0123456789abcdef", 33<<10) // 528 KiB
			got, pieces := t.export(t.present("large.txt", content))
			t.want(got == content, "the pieces must make the file of %d bytes; they make %d", len(content), len(got))
			t.want(pieces >= 3, "528 KiB cannot come in %d pieces", pieces)
		}).given(clausePresent),
		rule("export-empty", sectionExport, "the export of an empty file is an end at once", func(t *trial) {
			got, _ := t.export(t.present("empty.txt", ""))
			t.want(got == "", "an empty file must give nothing, not %q", got)
		}).given(clausePresent),
		rule("export-immutable", sectionExport, "an export is what the file was when it was presented", func(t *trial) {
			offer := t.present("changing.txt", "before\n")
			t.write("check-export/changing.txt", "after, and longer\n")
			got, _ := t.export(offer)
			t.want(got == "before\n", "the export must be %q as it was presented, not %q", "before\n", got)
		}).given(clausePresent),
		rule("export-close", sectionExport, "a closed export is gone, and an unknown one is an error", func(t *trial) {
			offer := t.present("closed.txt", "x\n")
			token := args{"token": offer["execution_export"]}
			t.object("the reply to export/close", t.must("export/close", token), "")
			t.refuses("it was closed", "export/read", token.with("offset", 0))
			t.refuses("there is no such export", "export/read", args{"token": "check-unknown", "offset": 0})
		}).given(clausePresent),
	}
}

// export reads an export to its end.
func (t *trial) export(offer args) (content string, pieces int) {
	const most = 256 << 10
	size, _ := offer["size"].(float64)
	for {
		r := t.object("the reply to export/read", t.must("export/read", args{"token": offer["execution_export"], "offset": len(content)}), "data:string eof:bool")
		data, err := base64.StdEncoding.DecodeString(r["data"].(string))
		t.want(err == nil, "data must be base64: %v", err)
		t.want(len(data) <= most, "a piece must have at most 256 KiB, not %d bytes", len(data))
		content += string(data)
		pieces++
		t.want(len(content) <= int(size), "the export must not have more than the %v bytes that were declared", size)
		if r["eof"] == true {
			break
		}
		t.want(len(data) > 0, "a piece that is not the end must not be empty")
	}
	t.must("export/close", args{"token": offer["execution_export"]})
	return content, pieces
}
