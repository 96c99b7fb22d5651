package tool

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestView(t *testing.T) {
	for _, row := range []struct{ name, tool, structured, want string }{
		{"a file", "read_file", `{"path":"f","content":"a\nb\n","start_line":1,"num_lines":2,"total_lines":2,"truncated":false}`, "a\nb\n"},
		{"an empty file", "read_file", `{"path":"f","content":"","truncated":false}`, "[the file is empty]"},
		{"a page", "read_file", `{"content":"a\nb\n","start_line":3,"num_lines":2,"total_lines":9,"truncated":true,"continuation":"c1.x"}`, "a\nb\n[lines 3 to 4 of 9]\n[continuation: c1.x]"},
		{"half a line", "read_file", `{"content":"a","start_line":1,"num_lines":1,"truncated":true,"lossy":true}`, "a\n[lines 1 to 1, there are more]\n[bytes that are not UTF-8 are shown as \ufffd]"},
		{"bytes", "read_file", `{"content":"AAE=","encoding":"base64","byte_offset":5,"num_bytes":2,"size":9}`, "AAE=\n[base64 of bytes 5 to 7 of 9]"},
		{"an image", "read_file", `{"path":"p.png","mime_type":"image/png","size":10}`, "[p.png: image/png, 10 bytes]"},
		{"a change", "edit_file", `{"path":"f","new_file_sha":"x","diff":"--- a/f\n+b\n"}`, "--- a/f\n+b\n"},
		{"a long change", "write_file", `{"path":"f","new_file_sha":"x","diff":"+b\n","diff_truncated":true}`, "+b\n[the diff is cut here]"},
		{"a new binary", "write_file", `{"path":"f","written_bytes":3,"new_file_sha":"x","diff":"","created":true}`, "created f (3 bytes)"},
		{"a new text", "write_file", `{"path":"f","written_bytes":3,"new_file_sha":"x","diff":"+++ b/f\n+ab\n","created":true}`, "created f (3 bytes)"},
		{"no change", "write_file", `{"path":"f","written_bytes":3,"old_file_sha":"x","new_file_sha":"x","diff":""}`, "f holds this already (3 bytes)"},
		{"output", "bash", `{"command":"c","exit_code":0,"stdout":"out\n","stderr":""}`, "out\n"},
		{"nothing", "bash", `{"command":"c","exit_code":0,"stdout":"","stderr":""}`, "[no output]"},
		{"a failure", "bash", `{"command":"c","exit_code":2,"stdout":"out","stderr":"err\n"}`, "out\n[stderr]\nerr\n[exit code 2]"},
		{"stderr only", "git", `{"exit_code":1,"stdout":"","stderr":"err\n"}`, "err\n[exit code 1]"},
		{"out of memory", "process", `{"process":{"id":"p-a","status":"stopped","exit_code":-1,"signal":"SIGKILL","oom_killed":"certain","command":"make"}}`,
			"p-a ended by SIGKILL (memory was used up, and the kernel killed it or what it had started): make"},
		{"a signal", "bash", `{"exit_code":-1,"signal":"SIGKILL","stdout":"","stderr":""}`, "[ended by SIGKILL]"},
		{"a timeout", "bash", `{"exit_code":-1,"stdout":"a\n","stderr":"","stdout_truncated":true,"timed_out":true,"duration_ms":1000,"promoted_process_id":"p-1"}`,
			"a\n[stdout was longer and is cut]\n[still running after 1000 ms; it goes on as background process p-1]"},
		{"in the background", "bash", `{"exit_code":-1,"stdout":"","stderr":"","promoted_process_id":"p-1","hint":"so"}`, "[started as background process p-1]\n[so]"},
		{"a listing", "list_files", `{"entries":[{"name":"d","is_dir":true},{"name":"f","size":3},{"name":"l","type":"symlink","target":"t"},{"name":"p","type":"other"}],"total":9,"offset":0,"returned_count":4,"has_more":true}`,
			"d/\nf\t3\nl -> t\np\t(other)\n[results 1 to 4 of 9; the next begin at offset 4]"},
		{"an empty listing", "list_files", `{"entries":[],"total":0,"returned_count":0}`, "[the directory is empty]"},
		{"files", "glob", `{"files":["a","b"],"total":2,"returned_count":2}`, "a\nb"},
		{"a page too far", "glob", `{"files":[],"total":2,"offset":7,"returned_count":0}`, "[there are 2 results, none at offset 7]"},
		{"lines", "grep", `{"matches":[{"path":"a","line":2,"text":"x"},{"path":"b","line":9,"text":"y"}],"total":2,"returned_count":2}`, "a:2:x\nb:9:y"},
		{"lines around", "grep", `{"matches":[{"path":"a","line":1,"text":"w","context":true},{"path":"a","line":2,"text":"x"},{"path":"a","line":5,"text":"y"}],"total":2,"returned_count":2}`,
			"a-1-w\na:2:x\n--\na:5:y"},
		{"names", "grep", `{"files":["a"],"total":1,"returned_count":1,"unreadable":2}`, "a\n[2 files or directories could not be read]"},
		{"counts", "grep", `{"counts":[{"path":"a","count":3}],"total":1,"returned_count":1}`, "a:3"},
		{"guarded", "grep", `{"files":["a"],"total":1,"returned_count":1,"guarded":2}`, "a\n[files that may hold secrets were not searched: 2]"},
		{"no names", "grep", `{"total":0,"returned_count":0,"unreadable":1}`, "[nothing matches]\n[1 file or directory could not be read]"},
		{"no files", "glob", `{"files":[],"total":0,"returned_count":0,"unreadable":1}`, "[no files match]\n[1 file or directory could not be read]"},
		{"no matches", "grep", `{"total":0,"returned_count":0}`, "[nothing matches]"},
		{"processes", "process", `{"processes":[{"id":"p-1","status":"running","command":"serve","exit_code":-1},{"id":"p-2","status":"stopped","argv":["a","b"],"exit_code":3},{"id":"p-3","status":"failed","terminal_cause":"lost","command":"c"}]}`,
			"p-1 running: serve\np-2 exited with code 3: a b\np-3 lost: c"},
		{"no processes", "process", `{"processes":[]}`, "[there are no background processes]"},
		{"a process's output", "process", `{"process":{"id":"p-1","status":"stopped","signal":"SIGTERM","command":"c","exit_code":-1},"output":"a\n","start_offset":5,"end_offset":7,"total_bytes":7,"truncated":true,"eof":true}`,
			"a\n[p-1 ended by SIGTERM: c; bytes 5 to 7 of 7]\n[earlier output is no longer kept]"},
		{"output so far", "process", `{"process":{"id":"p-1","status":"running","command":"c","exit_code":-1},"output":"a","start_offset":0,"end_offset":1,"total_bytes":9}`,
			"a\n[p-1 running: c; bytes 0 to 1 of 9; the next begin at offset_bytes 1]"},
		{"a process", "process", `{"process":{"id":"p-1","status":"stopping","command":"c"}}`, "p-1 stopping: c"},
		{"names with controls", "list_files", `{"entries":[{"name":"a\nb","size":1},{"name":"t\tü%","is_dir":true},{"name":"l","type":"symlink","target":"\u001b"},{"name":"bytes:%FF","size":2}],"total":4,"returned_count":4}`,
			"bytes:a%0Ab\t1\nbytes:t%09%C3%BC%25/\nl -> bytes:%1B\nbytes:%FF\t2"},
		{"paths with controls", "glob", `{"files":["d/a\nb","\u0085 x"],"total":2,"returned_count":2}`, "bytes:d/a%0Ab\nbytes:%C2%85%20x"},
		{"lines of files with controls", "grep", `{"matches":[{"path":"a\nb","line":2,"text":"x"}],"total":1,"returned_count":1}`, "bytes:a%0Ab:2:x"},
		{"another shape", "read_file", `{"text":"x"}`, `{"text":"x"}`},
		{"another tool", "deploy", `{"x":1}`, `{"x":1}`},
		{"no object", "grep", `[1,2]`, `[1,2]`},
		{"nothing at all", "grep", ``, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			token := ViewToken(row.tool, json.RawMessage(row.structured))
			if row.structured != "" && !json.Valid(token) {
				t.Fatalf("the token is %s", token)
			}
			if got := View(row.tool, json.RawMessage(row.structured)); got != row.want {
				t.Errorf("the view is %q, want %q", got, row.want)
			}
		})
	}
}

// TestViewReusesTheToken: a large file's text is neither copied nor changed,
// whatever escapes it was written with.
func TestViewReusesTheToken(t *testing.T) {
	content := `"` + strings.Repeat(`\u00e9 \u003c\/\n`, 100_000) + `"`
	structured := json.RawMessage(`{"path": "f", "content" : ` + content + ` , "num_lines":1,"truncated":false}`)
	before := bytes.Clone(structured)
	token := ViewToken("read_file", structured)
	if string(token) != content {
		t.Fatalf("the token is %.40s", token)
	}
	if at := bytes.Index(structured, []byte(content)); &structured[at] != &token[0] {
		t.Error("the token is a copy")
	}
	if joined(token, "note"); !bytes.Equal(before, structured) {
		t.Error("adding to the token changed the content")
	}
}

func TestViewOfBrokenText(t *testing.T) {
	for _, structured := range []string{"{\"content\":\"\xff\"}", `{"content":"\ud800"}`, "{\"content\":", "\xff"} {
		if token := ViewToken("read_file", json.RawMessage(structured)); len(token) < 2 {
			t.Errorf("%q has no view", structured)
		}
	}
}

// FuzzMembers compares the quick cut with the standard decoder.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"\\\"","b":[1,{"c":"]}"}],"d":-1.5e3, "e" : null }`, ` {"a":{},"a":true} `, `{"a":1`, `[]`, `{"\u0061":1}`, `{"a":1,"b":2,"a":3}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := members(raw)
		if !json.Valid(raw) {
			return // it must only not panic
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil || want == nil {
			if err == nil {
				t.Fatalf("%q is cut into %q", raw, got)
			}
			return
		}
		names := make(map[string]bool)
		for _, field := range got {
			names[string(field.name)] = true
		}
		if err != nil || len(names) != len(want) {
			t.Fatalf("%q: %d members, want %d, %v", raw, len(names), len(want), err)
		}
		for name, value := range want {
			if utf8.ValidString(name) && !strings.Contains(name, "\ufffd") && !bytes.Equal(got.get(name), value) {
				t.Fatalf("%q: %q is %q, want %q", raw, name, got.get(name), value)
			}
		}
	})
}

func BenchmarkView(b *testing.B) {
	structured, err := json.Marshal(map[string]any{"path": "f", "content": strings.Repeat("a line of text\n", 70_000), "truncated": false})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(structured)))
	for b.Loop() {
		ViewToken("read_file", structured)
	}
}
