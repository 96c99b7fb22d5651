package main

import (
	"context"
	"errors"
	"strings"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A bad parameter is named as the request called it, whoever found it bad; a
// file is told in words then. Other kinds of errors tell the file itself.
func testErrorPaths(w *work) {
	w.sh("mkdir -p errors/dir && echo x > errors/file && ln -s /etc errors/out && echo x > errors/plain && chmod 600 errors/plain")
	id := w.session.ID
	file := func(path string) protocol.FileParams { return protocol.FileParams{SessionID: id, Path: path} }
	start := func(p protocol.ProcessStartParams) func(context.Context) error {
		p.SessionID = id
		return func(ctx context.Context) error { _, err := w.ProcessStart(ctx, p); return err }
	}
	stat := func(path string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := w.FileStat(ctx, file(path)); return err }
	}
	list := func(path string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := w.ReadDirectory(ctx, file(path)); return err }
	}
	read := func(p protocol.FileReadParams) func(context.Context) error {
		p.SessionID = id
		return func(ctx context.Context) error { _, err := w.FileRead(ctx, p); return err }
	}
	write := func(path string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.FileWrite(ctx, protocol.FileWriteParams{SessionID: id, Path: path, Data: []byte("x")})
			return err
		}
	}
	publish := func(path string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.ArtifactPublish(ctx, protocol.ArtifactPublishParams{SessionID: id, Path: path})
			return err
		}
	}
	call := func(name string, a members) func(context.Context) error {
		return func(context.Context) error { _, err := w.try(name, a); return err }
	}
	for what, row := range map[string]struct {
		do    func(context.Context) error
		kind  protocol.Kind // "" for a bad parameter
		path  string
		words string
	}{
		"stat of nothing":            {stat("errors/none"), "", "path", "errors/none"},
		"stat below a file":          {stat("errors/file/x"), "", "path", "errors/file"},
		"stat with a NUL":            {stat("a\x00b"), "", "path", "NUL"},
		"stat badly coded":           {stat("bytes:%zz"), "", "path", "bytes:%zz"},
		"stat too long":              {stat(strings.Repeat("x/", 5000)), "", "path", "bytes long"},
		"stat of a long name":        {stat("errors/" + strings.Repeat("x", 300)), "", "path", "errors/"},
		"list of a file":             {list("errors/file"), "", "path", "errors/file"},
		"list of nothing":            {list("errors/none"), "", "path", "errors/none"},
		"read of a directory":        {read(protocol.FileReadParams{Path: "errors/dir"}), "", "path", "errors/dir"},
		"read of nothing":            {read(protocol.FileReadParams{Path: "errors/none"}), "", "path", "errors/none"},
		"read before the file":       {read(protocol.FileReadParams{Path: "errors/file", Offset: -1}), "", "offset", "negative"},
		"write over a directory":     {write("errors/dir"), "", "path", "errors/dir"},
		"write below a file":         {write("errors/file/x"), "", "path", "errors/file"},
		"write nowhere":              {write(""), "", "path", ""},
		"stat outside":               {stat("../x"), protocol.KindPathOutsideRoot, "../x", ""},
		"stat by a link":             {stat("errors/out/passwd"), protocol.KindPathOutsideRoot, "errors/out/passwd", ""},
		"publish outside":            {publish("/etc/passwd"), protocol.KindPathOutsideRoot, "/etc/passwd", ""},
		"publish nothing":            {publish("errors/none"), protocol.KindArtifactNotFound, "errors/none", "errors/none"},
		"publish a directory":        {publish("errors/dir"), protocol.KindArtifactNotFound, "errors/dir", "errors/dir"},
		"publish badly coded":        {publish("bytes:%zz"), "", "path", "bytes:%zz"},
		"start nowhere":              {start(protocol.ProcessStartParams{Command: "true", CWD: "errors/none"}), "", "cwd", "errors/none"},
		"start in a file":            {start(protocol.ProcessStartParams{Command: "true", CWD: "errors/file"}), "", "cwd", "errors/file"},
		"start of no program":        {start(protocol.ProcessStartParams{Argv: []string{"./errors/plain"}}), "", "argv", "errors/plain"},
		"start of a directory":       {start(protocol.ProcessStartParams{Argv: []string{"./errors/dir"}}), "", "argv", "errors/dir"},
		"start of a missing program": {start(protocol.ProcessStartParams{Argv: []string{"./errors/none"}}), protocol.KindUnsupported, "./errors/none", "errors/none"},
		"start with a bad variable":  {start(protocol.ProcessStartParams{Command: "true", Env: map[string]string{"A=B": "x"}}), "", "env", "A=B"},
		"start outside":              {start(protocol.ProcessStartParams{Command: "true", CWD: "/etc"}), protocol.KindPathOutsideRoot, "/etc", ""},
		"a tool outside":             {call("read_file", members{"path": "/etc/passwd"}), protocol.KindPathOutsideRoot, "/etc/passwd", ""},
		"a tool with a bad path":     {call("read_file", members{"path": "bytes:%zz"}), "", "arguments.path", "bytes:%zz"},
	} {
		err := answerOf(row.do(w.ctx()))
		switch {
		case err == nil || err.Data == nil:
			w.Errorf("%s: %v", what, err)
		case row.kind == "" && err.Code != protocol.CodeInvalidParams, row.kind != err.Kind():
			w.Errorf("%s: the code %d and the kind %q: %s", what, err.Code, err.Kind(), err.Message)
		case err.Data.Path != row.path && (row.kind == "" || !strings.HasSuffix(err.Data.Path, row.path)):
			w.Errorf("%s: the path %q, not %q", what, err.Data.Path, row.path)
		case !strings.Contains(err.Message, row.words):
			w.Errorf("%s: %q does not say %q", what, err.Message, row.words)
		}
	}
}

// answerOf is the error answer in err's chain, or nil.
func answerOf(err error) *protocol.Error {
	answer, _ := errors.AsType[*protocol.Error](err)
	return answer
}
