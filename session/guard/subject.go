package guard

import (
	"encoding/json"
	"path"
	"strings"
)

// subject is a call that is judged: its arguments and commands are read when a
// rule asks for them, once for all policies.
type subject struct {
	call Call

	object *jsonObject
	bad    error
	found  []command
	looked bool
}

func (s *subject) arguments() (*jsonObject, error) {
	if s.object == nil {
		s.object = &jsonObject{}
		s.bad = s.object.read(s.call.Arguments)
	}
	return s.object, s.bad
}

// script is what a job runs by an interpreter.
type script struct {
	Interpreter string `json:"interpreter"`
	Source      string `json:"source"`
}

// commands are all simple commands that the call runs, as far as they can be
// known: of a shell line (command), of a program with its arguments (argv), of a
// job's script, of the git tool, and of what is written to a process.
func (s *subject) commands() []command {
	if s.looked {
		return s.found
	}
	s.looked = true
	if group, _, _ := strings.Cut(s.call.Tool, "."); group == "file" || group == "search" || group == "artifact" {
		return nil // whose arguments may be long, and are no commands
	}
	o, err := s.arguments()
	if err != nil {
		s.found = []command{opaque("the arguments", "they are no JSON object whose members stand once")}
		return s.found
	}
	w := newWalker(&effort{})
	w.base = dirText(s.call.Dir)
	sh := newShell(s.directory(o))
	for name, data := range s.call.Files {
		text := string(anything)
		if len(data) <= maxText {
			text = string(data)
		}
		sh.files[resolve(sh.dir, name)] = authored(text)
	}
	if raw, ok := o.members["env"]; ok {
		var env map[string]string
		if json.Unmarshal(raw, &env) == nil {
			for name, v := range env {
				w.setting(sh, name, v)
			}
		}
	}
	if s.call.Tool == "git.git" {
		if name, ok := o.text("subcommand"); ok {
			args, _ := o.list("args")
			w.run(sh, literal(append([]string{"git", name}, args...)), unread)
		}
	}
	if s.call.Tool == "process.process" {
		if input, ok := o.text("input"); ok {
			w.found = append(w.found, keyed(input, w.effort)...)
		}
	}
	if line, ok := o.text("command"); ok {
		w.code(sh, line, unread)
	} else if argv, ok := o.list("command"); ok {
		w.run(sh, literal(argv), unread)
	}
	if argv, ok := o.list("argv"); ok {
		stdin := unread
		if text, ok := o.text("stdin"); ok {
			stdin = text
		}
		w.run(sh, literal(argv), stdin)
	}
	var job script
	if raw, ok := o.members["script"]; ok && json.Unmarshal(raw, &job) == nil && job.Interpreter != "" {
		w.interpreted(sh, job)
	}
	w.uncalled()
	s.found = w.commands()
	return s.found
}

// directory is where the call's commands run.
func (s *subject) directory(o *jsonObject) string {
	dir := s.call.Dir
	if cwd, ok := o.text("cwd"); ok && cwd != "" {
		if plain, ok := decode(cwd); ok {
			cwd = plain
		}
		if path.IsAbs(cwd) {
			return path.Clean(cwd)
		}
		return resolve(dirText(dir), cwd)
	}
	return dirText(dir)
}
