//go:build unix

package main

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is git's
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

const (
	// names is how many files a session writes to, again and again.
	names = 6
	// tag is in every one of them.
	tag = "soaked"
	// largest is the most that is written to one, larger than what goes
	// into one frame's JSON.
	largest = 600 << 10
)

// tool calls a tool. A refusal of the tool's own is nothing, and the result
// tells it.
func (a *agent) tool(ctx context.Context, name string, arguments any) (protocol.ToolCallResult, effect, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return protocol.ToolCallResult{}, nothing, err
	}
	a.calls++
	p := protocol.ToolCallParams{SessionID: a.sessionID(), Name: name, Arguments: raw, CallID: fmt.Sprintf("%s-%d", a.name(), a.calls)}
	a.service.watch(p.CallID)
	s, began := a.service, time.Now()
	call, cancel := limited(ctx)
	defer cancel()
	result, err := s.ToolCall(call, p)
	wrong := s.forget(p.CallID, err == nil)
	e, err := a.judge(name, began, err)
	if err = errors.Join(err, wrong); err != nil {
		return result, e, err
	}
	if e == done && result.IsError {
		e = nothing
	}
	a.tally.count("calls")
	return result, e, nil
}

// named is one of the session's files, and what is known of it.
func (a *agent) named(r *rand.Rand) (string, *file) {
	name := path.Join(a.subdir, fmt.Sprintf("f%d", r.IntN(names)))
	f := a.files[name]
	if f == nil {
		f = newFile()
		a.files[name] = f
	}
	return name, f
}

// content is a text unlike all others, with one word that an edit can change.
func (a *agent) content(r *rand.Rand) string {
	a.calls++
	lines := r.IntN(40)
	if r.IntN(30) == 0 {
		lines = r.IntN(largest / 32)
	}
	return fmt.Sprintf("%s by %s\nedited 0 times <%d>\n%s", tag, a.sessionID(), a.calls, strings.Repeat("the rest of it, thirty-two bytes\n", lines))
}

func (a *agent) write(ctx context.Context, r *rand.Rand) error {
	name, f := a.named(r)
	content := a.content(r)
	result, e, err := a.tool(ctx, "write_file", map[string]any{"path": name, "content": content})
	if err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("%s: %s", name, result.Content[0].Text)
	}
	a.note("write %s: %s %d", name, head(content), e)
	f.wrote(content, e)
	a.tally.outcome("writes", e)
	return nil
}

func (a *agent) edit(ctx context.Context, r *rand.Rand) error {
	name, f := a.named(r)
	from := f.may[r.IntN(len(f.may))]
	if from == absent {
		return nil
	}
	_, from, _ = strings.Cut(from, "\n")
	from, _, _ = strings.Cut(from, "\n")
	a.calls++
	to := fmt.Sprintf("edited once more <%d>", a.calls)
	result, e, err := a.tool(ctx, "edit_file", map[string]any{"path": name, "old_text": from, "new_text": to})
	if err != nil {
		return err
	}
	a.note("edit %s: %q to %q %d", name, from, to, e)
	a.tally.outcome("writes", e)
	if e == nothing && !result.IsError {
		return nil // the service refused, not the tool
	}
	if err := f.edited(from, to, e); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (a *agent) read(ctx context.Context, r *rand.Rand) error {
	name, f := a.named(r)
	return a.readFile(ctx, name, f, r.IntN(2) == 0)
}

// readFile checks one file, by the tool or by the editor's way.
func (a *agent) readFile(ctx context.Context, name string, f *file, byTool bool) error {
	var content string
	if byTool {
		result, e, err := a.tool(ctx, "read_file", map[string]any{"path": name, "encoding": "base64"})
		if err != nil || e != done && !result.IsError {
			return err
		}
		if result.IsError {
			content = absent
		} else {
			var page struct {
				Content   string `json:"content"`
				Truncated bool   `json:"truncated"`
			}
			if err := json.Unmarshal(result.StructuredContent, &page); err != nil {
				return err
			}
			raw, err := base64.StdEncoding.DecodeString(page.Content)
			if err != nil {
				return err
			}
			if page.Truncated {
				return a.readFile(ctx, name, f, false)
			}
			content = string(raw)
		}
	} else {
		var err error
		var e effect
		if content, e, err = a.fetch(ctx, name); err != nil || e != done {
			return err
		}
	}
	if err := f.read(content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// fetch is the content of a file by fs/readFile.
func (a *agent) fetch(ctx context.Context, name string) (string, effect, error) {
	call, cancel := limited(ctx)
	defer cancel()
	began := time.Now()
	result, err := a.service.FileRead(call, protocol.FileReadParams{SessionID: a.sessionID(), Path: name})
	var refused *protocol.Error
	if errors.As(err, &refused) && refused.Kind() == "" && strings.Contains(refused.Message, "there is no file") {
		return absent, done, nil
	}
	e, err := a.judge("fs/readFile "+name, began, err)
	if e == done && !result.EOF {
		err = fmt.Errorf("%s: the file does not fit into one page", name)
	}
	return string(result.Data), e, err
}

// append has a command append a line to the session's book.
func (a *agent) append(ctx context.Context, r *rand.Rand) error {
	a.calls++
	line := fmt.Sprintf("%s-%d-%d", a.name(), a.generation, a.calls)
	result, e, err := a.tool(ctx, "bash", map[string]any{"command": fmt.Sprintf("mkdir -p %s && echo %s >> %s && echo fine", a.subdir, line, a.bookName())})
	if err != nil {
		return err
	}
	if e == done {
		if err := ran(result, 0, "fine\n"); err != nil {
			return err
		}
	}
	a.note("append %s %d", line, e)
	a.book.appended(line, e)
	a.tally.outcome("appends", e)
	return nil
}

func (a *agent) bookName() string { return path.Join(a.subdir, "book") }

// ran checks what a command answered.
func ran(result protocol.ToolCallResult, code int, stdout string) error {
	var got struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
	}
	if err := json.Unmarshal(result.StructuredContent, &got); err != nil {
		return err
	}
	if got.ExitCode != code || got.Stdout != stdout {
		return fmt.Errorf("the command answered %s, want code %d and %q", result.StructuredContent, code, stdout)
	}
	return nil
}

func (a *agent) readBook(ctx context.Context, _ *rand.Rand) error {
	content, e, err := a.fetch(ctx, a.bookName())
	if err != nil || e != done {
		return err
	}
	if content == absent {
		content = ""
	}
	return a.book.read(content)
}

// find lists the session's files in one of three ways.
func (a *agent) find(ctx context.Context, r *rand.Rand) error {
	tool := []string{"glob", "grep", "list_files"}[r.IntN(3)]
	arguments := map[string]map[string]any{
		"glob":       {"pattern": a.subdir + "/f*"},
		"grep":       {"pattern": "^" + tag, "path": a.subdir, "output_mode": "files_with_matches"},
		"list_files": {"path": a.subdir},
	}[tool]
	result, e, err := a.tool(ctx, tool, arguments)
	if err != nil || e != done {
		return err // without a file there is no directory
	}
	var found struct {
		Files   []string `json:"files"`
		Entries []struct {
			Path string `json:"path"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(result.StructuredContent, &found); err != nil {
		return err
	}
	for _, entry := range found.Entries {
		found.Files = append(found.Files, entry.Path)
	}
	found.Files = slices.DeleteFunc(found.Files, func(name string) bool { return !strings.HasPrefix(path.Base(name), "f") })
	for name, f := range a.files {
		must, may := f.there()
		if is := slices.Contains(found.Files, name); is && !may || !is && must {
			return fmt.Errorf("%s finds %v; %s must be there: %t, may: %t", tool, found.Files, name, must, may)
		}
	}
	for _, name := range found.Files {
		if a.files[name] == nil {
			return fmt.Errorf("%s finds %s, which nobody wrote", tool, name)
		}
	}
	return nil
}

// hash has git look at a file.
func (a *agent) hash(ctx context.Context, r *rand.Rand) error {
	name, f := a.named(r)
	if must, _ := f.there(); !must {
		return nil
	}
	result, e, err := a.tool(ctx, "git", map[string]any{"subcommand": "hash-object", "args": []string{"--no-filters", name}})
	if err != nil || e != done {
		return err
	}
	for _, content := range f.may {
		sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
		if err = ran(result, 0, hex.EncodeToString(sum[:])+"\n"); err == nil {
			return f.read(content)
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// burst makes many calls at once, each on a file of its own.
func (a *agent) burst(ctx context.Context, r *rand.Rand) error {
	const most = 12
	type one struct {
		name, content string
		file          *file
		err           error
	}
	calls := make([]one, 2+r.IntN(most-1))
	var group sync.WaitGroup
	s, began := a.service, time.Now()
	for i := range calls {
		c := &calls[i]
		c.name, c.content = path.Join(a.subdir, fmt.Sprintf("f-burst%d", i)), a.content(r)
		if c.file = a.files[c.name]; c.file == nil {
			c.file = newFile()
			a.files[c.name] = c.file
		}
		group.Go(func() {
			call, cancel := limited(ctx)
			defer cancel()
			_, c.err = s.FileWrite(call, protocol.FileWriteParams{SessionID: a.sessionID(), Path: c.name, Data: []byte(c.content)})
		})
	}
	group.Wait()
	for _, c := range calls {
		e, err := a.judge("fs/writeFile", began, c.err)
		if err != nil {
			return err
		}
		a.note("burst %s: %s %d", c.name, head(c.content), e)
		c.file.wrote(c.content, e)
		a.tally.outcome("writes", e)
	}
	return nil
}
