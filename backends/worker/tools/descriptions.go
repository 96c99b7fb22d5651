package tools

import (
	"encoding/json"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Descriptions are all workspace tools of the protocol, sorted by name.
func Descriptions() []tool.Description {
	read, write := tool.Annotations{ReadOnly: true}, tool.Annotations{Destructive: true}
	describe := func(name string, group tool.Group, a tool.Annotations, text, schema string) tool.Description {
		return tool.Description{Name: name, Group: group, Description: text, InputSchema: json.RawMessage(schema), Annotations: a}
	}
	return []tool.Description{
		describe("bash", tool.GroupShell, write, `Run a shell command line in the workspace and return its exit code, stdout and stderr. `+
			`Each call is a shell of its own: directory and variables do not last. A command that takes longer than timeout_seconds is not stopped: it goes on as a background process, which the tool process reads and stops. `+
			`Set run_in_background for servers and watchers.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "the command line"},
    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "default": 300, "description": "how long to wait for the command"},
    "cwd": {"type": "string", "description": "directory to run in; the workspace if left out"},
    "run_in_background": {"type": "boolean", "default": false, "description": "start it and return at once"}
  },
  "required": ["command"]
}`),
		describe("edit_file", tool.GroupFile, write, `Replace text in a file. old_text must be in the file exactly once, unless replace_all is set; give enough surrounding lines to make it unique. `+
			`Line endings, a byte order mark, UTF-16 and everything that is not named stay as they are: write newlines as \n whatever the file uses.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "the file, relative to the workspace or absolute"},
    "old_text": {"type": "string", "minLength": 1, "description": "the exact text to replace"},
    "new_text": {"type": "string", "description": "what to put there"},
    "replace_all": {"type": "boolean", "default": false, "description": "replace every occurrence"}
  },
  "required": ["path", "old_text", "new_text"]
}`),
		describe("git", tool.GroupGit, write, `Run git in the workspace without a shell, a pager, an editor or questions.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "subcommand": {"type": "string", "minLength": 1, "description": "such as status, diff or commit"},
    "args": {"type": "array", "items": {"type": "string"}, "description": "its arguments, one by one and unquoted"}
  },
  "required": ["subcommand"]
}`),
		describe("glob", tool.GroupSearch, read, `Find files by name. In the pattern * and ? match within a directory, ** any number of directories, {a,b} either. `+
			`Ignored files (.gitignore, .ignore) are left out unless the pattern or path names their directory. Results are sorted by path.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "such as **/*.go or src/{a,b}/*.ts"},
    "path": {"type": "string", "description": "directory to search; the workspace if left out"},
    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "how many results to skip"}
  },
  "required": ["pattern"]
}`),
		describe("grep", tool.GroupSearch, read, `Search file contents by line with a regular expression in RE2 syntax (no look-around, no back-references). `+
			`Ignored files (.gitignore, .ignore), binary files, files that hold secrets and symbolic links are left out; a path that names an ignored directory searches it.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "pattern": {"type": "string", "description": "the expression"},
    "path": {"type": "string", "description": "file or directory to search; the workspace if left out"},
    "include": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}], "description": "globs of files to search, such as *.go; one that begins with ! leaves files out"},
    "output_mode": {"enum": ["content", "files_with_matches", "count"], "default": "content", "description": "lines, names of files, or names with the number of lines"},
    "context": {"type": "integer", "minimum": 0, "maximum": 100, "default": 0, "description": "lines to show around each match"},
    "before": {"type": "integer", "minimum": 0, "maximum": 100, "description": "lines to show before each match, instead of context"},
    "after": {"type": "integer", "minimum": 0, "maximum": 100, "description": "lines to show after each match, instead of context"},
    "ignore_case": {"type": "boolean", "default": false, "description": "ignore case"},
    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "how many results to skip"}
  },
  "required": ["pattern"]
}`),
		describe("list_files", tool.GroupFile, read, `List a directory, sorted by name, hidden and ignored entries included.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "path": {"type": "string", "description": "the directory; the workspace if left out"},
    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "how many entries to skip"}
  }
}`),
		describe("present_artifact", tool.GroupArtifact, read, `Show a finished file to the user, such as an image, a report or an archive of at most 256 MiB. A copy is kept as it is now: later changes of the file do not change it.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "the file, relative to the workspace or absolute"}
  },
  "required": ["path"]
}`),
		describe("process", tool.GroupProcess, write, `Work with background processes: list them, read output (the tail, or from offset_bytes on; wait_ms waits for more), write input, stop one, or update (wait up to wait_ms for a change and return the record).`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "action": {"enum": ["read", "write", "stop", "list", "update"]},
    "process_id": {"type": "string", "description": "required by all but list"},
    "wait_ms": {"type": "integer", "minimum": 0, "maximum": 60000, "default": 0, "description": "how long to wait for output or a change"},
    "offset_bytes": {"type": "integer", "minimum": 0, "description": "read from here on; the tail if left out"},
    "max_bytes": {"type": "integer", "minimum": 1, "description": "how much to read"},
    "input": {"type": "string", "description": "what to write to its standard input"}
  },
  "required": ["action"]
}`),
		describe("read_file", tool.GroupFile, read, `Read a text file, by default its first 2000 lines, or show an image (PNG, JPEG, GIF, WebP). `+
			`offset and limit choose lines; a result that is truncated has a continuation, which reads on from there. Text in UTF-16 with a byte order mark is decoded, and encoding says so. Binary files are read with encoding base64. Files that hold secrets (.env, keys, credentials) are refused.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "the file, relative to the workspace or absolute"},
    "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "the first line, counted from 1"},
    "limit": {"type": "integer", "minimum": 1, "default": 2000, "description": "how many lines"},
    "continuation": {"type": "string", "description": "from the previous page, instead of offset"},
    "encoding": {"enum": ["utf8", "base64"], "default": "utf8"},
    "byte_offset": {"type": "integer", "minimum": 0, "default": 0, "description": "with base64: the first byte, counted from 0"},
    "byte_limit": {"type": "integer", "minimum": 1, "description": "with base64: how many bytes"}
  },
  "required": ["path"]
}`),
		describe("write_file", tool.GroupFile, write, `Write a whole file, at most 16 MiB, replacing what is there and making directories. An existing file keeps its mode and owner. To change a part of a file use edit_file.`, `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "the file, relative to the workspace or absolute"},
    "content": {"type": "string", "description": "what the file will hold"},
    "create_only": {"type": "boolean", "default": false, "description": "fail when the file exists"},
    "encoding": {"enum": ["utf8", "base64"], "default": "utf8", "description": "how content is given"}
  },
  "required": ["path", "content"]
}`),
	}
}
