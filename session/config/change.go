package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/diskfile"
)

// SetDefault makes the profile the default one in the user's file. All else stays
// as it is written, comments and white space too. A file that is not there is
// made. It fails with an [*Error] where the file is not valid, or has no such
// profile, and then nothing is changed.
func SetDefault(path, name string) error {
	target := path
	if file, err := filepath.EvalSymlinks(path); err == nil {
		target = file // a link stays one
	}
	d, problem := read(target)
	if problem != nil {
		return problem
	}
	before := []byte("")
	if d == nil {
		d, problem = parse(path, []byte("{\n}\n"))
	} else {
		before = d.file
	}
	if problem != nil {
		return problem
	}
	c, err := load(d)
	if err != nil {
		return err
	}
	if _, ok := c.Profile(name); !ok {
		e := &Error{File: path, Path: "execution_environments.default", Message: fmt.Sprintf("there is no profile %q", name)}
		e.Suggestion = profile.Nearest(name, c.Names())
		e.Hint = "The file is as it was. Its profiles are " + strings.Join(c.Names(), ", ") + "."
		return e
	}
	text, err := d.withDefault(name)
	if err != nil {
		return err
	}
	if c, err := Parse(path, text); err != nil || c.Default != name {
		return errors.Join(fmt.Errorf("%s cannot be changed: the result would not be valid", path), err)
	}
	return replace(target, before, text)
}

// withDefault is the text of the file with another default.
func (d *document) withDefault(name string) ([]byte, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	root, ok := d.tree.Value.(*hujson.Object)
	if !ok {
		return nil, d.errorAt(0, nil, "must be an object")
	}
	here := memberOf(root, "execution_environments")
	if here == nil {
		return d.insert(&d.tree, fmt.Sprintf(`"execution_environments": {"default": %s}`, quoted)), nil
	}
	object, ok := here.Value.(*hujson.Object)
	if !ok {
		return nil, d.problem(at("execution_environments"), "must be an object")
	}
	if old := memberOf(object, "default"); old != nil {
		return d.splice(old.StartOffset, old.EndOffset, string(quoted)), nil
	}
	return d.insert(here, `"default": `+string(quoted)), nil
}

func memberOf(o *hujson.Object, name string) *hujson.Value {
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// splice replaces a part of the text.
func (d *document) splice(from, to int, with string) []byte {
	bom := d.file[:len(d.file)-len(d.text)]
	return bytes.Join([][]byte{bom, d.text[:from], []byte(with), d.text[to:]}, nil)
}

// insert writes a member as the first one of an object, in a line of its own where
// the others have theirs.
func (d *document) insert(v *hujson.Value, member string) []byte {
	object := v.Value.(*hujson.Object)
	open := v.StartOffset + 1
	if len(object.Members) == 0 {
		return d.splice(open, open, " "+member+" ")
	}
	white := string(d.text[open:object.Members[0].Name.StartOffset])
	line, _, broken := strings.Cut(white, "\n")
	indent := white[strings.LastIndexByte(white, '\n')+1:]
	if broken && !strings.Contains(line, "/*") && strings.TrimSpace(indent) == "" {
		// Behind what stands in the line of the bracket, before whatever is said of
		// the first member.
		newline := "\n"
		if cut, crlf := strings.CutSuffix(line, "\r"); crlf {
			line, newline = cut, "\r\n"
		}
		return d.splice(open+len(line), open+len(line), newline+indent+member+",")
	}
	return d.splice(open, open, member+", ")
}

// unwritten is the error of a file that could not be replaced by a new one.
func unwritten(path string, err error) error {
	return &Error{
		File: path, Message: "it cannot be changed: " + err.Error(),
		Hint: "It is as it was: what is wrong is not in it. Its directory must be writable and have room, since a new file takes its place; or edit it by hand.",
	}
}

// written is what is told of a file that was written with this error.
func written(path string, err error) error {
	switch {
	case errors.Is(err, diskfile.ErrNotSynced):
		return &Error{File: path, Message: err.Error(), Hint: "It was changed; a crash of the machine now may take that back."}
	case err != nil:
		return unwritten(path, err)
	}
	return nil
}

// replace writes the file atomically, keeping its mode, unless it changed since it
// was read.
func replace(path string, before, text []byte) error {
	mode := os.FileMode(0o600)
	var now []byte
	old, info, err := diskfile.Open(path)
	if err == nil {
		mode = info.Mode().Perm()
		now, err = io.ReadAll(io.LimitReader(old, MaxFile+1))
		err = errors.Join(err, old.Close())
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return unwritten(path, err)
		}
	case err != nil:
		return &Error{File: path, Message: reason(err)}
	}
	if !bytes.Equal(now, before) {
		return &Error{File: path, Message: "somebody else has just changed it", Hint: "It is as they left it: try again."}
	}
	return written(path, diskfile.WriteFile(path, text, mode))
}
