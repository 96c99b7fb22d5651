package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

func TestCall(t *testing.T) {
	big := `{"content":"` + strings.Repeat("x\\n\\\"", wire.BulkArguments/4) + `"}`
	for _, test := range []struct {
		name string
		r    tool.Request
		want string // the frame's data
		body string
		caps []string
	}{
		{name: "the least", r: tool.Request{Name: "bash"},
			want: `{"call":{"name":"bash","arguments":"{}"},"actor":"s1","permission_mode":"standard"}`},
		{name: "all", r: tool.Request{ID: "c1", Name: "bash", Arguments: object(`{"command":"echo \"hi\""}`), Actor: tool.Actor{ID: "a7", Kind: tool.ActorSubagent},
			Mode: tool.ReadOnly, MaxOutputBytes: 99},
			want: `{"call":{"id":"c1","name":"bash","arguments":"{\"command\":\"echo \\\"hi\\\"\"}"},"actor":"a7","permission_mode":"read_only","max_output_bytes":99}`},
		{name: "the main agent by name", r: tool.Request{Name: "bash", Actor: tool.Actor{ID: "whoever", Kind: tool.ActorMain}},
			want: `{"call":{"name":"bash","arguments":"{}"},"actor":"s1","permission_mode":"standard"}`},
		{name: "a side chat", r: tool.Request{Name: "bash", Actor: tool.Actor{ID: "chat", Kind: tool.ActorSideChat}, Mode: tool.Standard},
			want: `{"call":{"name":"bash","arguments":"{}"},"actor":"chat","actor_kind":"side_chat","permission_mode":"read_only"}`},
		{name: "a side chat of one that knows none", r: tool.Request{Name: "bash", Actor: tool.Actor{ID: "chat", Kind: tool.ActorSideChat}},
			want: `{"call":{"name":"bash","arguments":"{}"},"actor":"chat","permission_mode":"read_only"}`, caps: []string{wire.CapBulk}},
		{name: "large arguments", r: tool.Request{Name: "write_file", Arguments: object(big)},
			want: `{"call":{"name":"write_file","arguments":""},"actor":"s1","permission_mode":"standard"}`, body: big},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFar(ourCaps...)
			if test.caps != nil {
				f = newFar(test.caps...)
			}
			f.on(wire.MethodExecute, func(_ context.Context, r *wire.Request) (wire.Response, error) {
				if string(r.Data) != test.want || string(r.Body) != test.body {
					t.Errorf("sent %s and %d bytes", r.Data, len(r.Body))
				}
				e, arguments, err := r.Execute()
				want := test.r.Arguments
				if want == nil {
					want = object("{}")
				}
				if err != nil || e.Call.Name != test.r.Name || !bytes.Equal(arguments, want) {
					t.Errorf("understood %+v, %d bytes, %v", e, len(arguments), err)
				}
				return wire.Response{Data: tool.Result{
					Content:           []tool.Part{{Type: tool.PartText, Text: "é\n"}},
					StructuredContent: object(`{"a":[1]}`), Meta: object(`{}`), IsError: true,
				}}, nil
			})
			e := open(t, f, binding(), Options{})
			result, err := e.Call(t.Context(), test.r)
			if err != nil || len(result.Content) != 1 || result.Content[0].Text != "é\n" || string(result.StructuredContent) != `{"a":[1]}` || !result.IsError {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

func TestCallsThatAreRefusedHere(t *testing.T) {
	b := binding()
	b.Profile.MaxPermissionMode = tool.ReadOnly
	b.Profile.PermissionMode = tool.ReadOnly
	plain := newFar() // somebody else's adapter, which announces nothing
	plain.says(wire.MethodExecute, tool.Result{}, nil)
	e := open(t, plain, b, Options{Tools: []tool.Description{{Name: "bash"}}})
	for name, test := range map[string]struct {
		r    tool.Request
		kind tool.Kind
	}{
		"a mode above the ceiling": {tool.Request{Name: "bash", Mode: tool.Standard}, tool.Denied},
		"a mode that is none":      {tool.Request{Name: "bash", Mode: "sudo"}, tool.Denied},
		"an unknown tool":          {tool.Request{Name: "teleport"}, tool.ToolNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Call(t.Context(), test.r)
			wantKind(t, err, test.kind)
		})
	}
	if n := plain.asked(wire.MethodExecute); n > 0 {
		t.Errorf("%d calls were sent", n)
	}
	if _, err := e.Call(t.Context(), tool.Request{Name: "bash", Arguments: object(`{"x":"` + strings.Repeat("y", wire.BulkArguments) + `"}`)}); err != nil {
		t.Errorf("large arguments for a peer without bodies: %v", err)
	}
	if tools, err := e.Tools(t.Context()); err != nil || len(tools) != 1 || tools[0].Name != "bash" {
		t.Error(tools, err)
	}
}

func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // or a busy machine has not asked by then
		f := newFar(ourCaps...)
		ended := make(chan struct{})
		f.on(wire.MethodExecute, func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
			<-ctx.Done()
			close(ended)
			return wire.Response{}, ctx.Err()
		})
		b := binding()
		b.Profile.Timeout = 20 * time.Millisecond
		e := open(t, f, b, Options{})
		_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
		wantKind(t, err, tool.Timeout)
		if e, ok := errors.AsType[*tool.Error](err); !ok || !strings.Contains(e.Hint, "background") || !strings.Contains(e.Hint, "the lowest limit") {
			t.Errorf("the hint of %v is not one", err)
		}
		if !strings.Contains(err.Error(), "bash took longer than 20ms") {
			t.Error(err)
		}
		receive(t, ended)
	})
}

func TestResultsThatAreNone(t *testing.T) {
	many := strings.Repeat(`{"type":"text"},`, tool.MaxParts) + `{"type":"text"}`
	for name, data := range map[string]string{
		"not an object":   `[]`,
		"odd content":     `{"content":7}`,
		"an odd part":     `{"content":[{"type":7}]}`,
		"too many parts":  `{"content":[` + many + `]}`,
		"too much inline": `{"content":[{"type":"image","data":"` + strings.Repeat("A", tool.MaxInlineBytes/3*4+8) + `"}]}`,
		"too long":        `{"meta":"` + strings.Repeat("x", tool.MaxResultBytes) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar(ourCaps...)
			f.says(wire.MethodExecute, json.RawMessage(data), nil)
			e := open(t, f, binding(), Options{})
			_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
			wantKind(t, err, tool.ProtocolMismatch)
			if tool.HintOf(err) == "" {
				t.Errorf("%v says nothing about what to do", err)
			}
		})
	}
}

func TestTools(t *testing.T) {
	f := newFar(ourCaps...)
	f.says(wire.MethodToolsList, wire.ToolList{Tools: []tool.Description{{Name: "lint", InputSchema: object(`{"type":"object"}`)}}}, nil)
	e := open(t, f, binding(), Options{})
	tools, err := e.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Name != "lint" || string(tools[0].InputSchema) != `{"type":"object"}` {
		t.Error(tools, err)
	}
	f.says(wire.MethodToolsList, wire.ToolList{Tools: make([]tool.Description, maxTools+1)}, nil)
	_, err = e.Tools(t.Context())
	wantKind(t, err, tool.ProtocolMismatch)
}

func TestFiles(t *testing.T) {
	f := newFar(ourCaps...)
	content := make([]byte, 3<<20)
	rand.Read(content)
	info := backends.FileInfo{Name: "a", Path: "d/a", Type: "file", Size: 3, Mode: "0644", ModTime: time.Unix(1, 0).UTC()}
	f.says(wire.MethodStat, info, nil)
	f.says(wire.MethodReadDirectory, wire.Directory{Entries: []wire.FileInfo{info, info}}, nil)
	f.on(wire.MethodReadFile, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		var in wire.FileRange
		if err := r.Decode(&in); err != nil {
			return wire.Response{}, err
		}
		return wire.Response{Data: struct{}{}, Body: content[in.Offset:]}, nil
	})
	var written []byte
	f.on(wire.MethodWriteFile, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		written = r.Body
		return wire.Response{Data: info}, nil
	})
	e := open(t, f, binding(), Options{})
	if got, err := e.Stat(t.Context(), "d/a"); err != nil || got != info {
		t.Error(got, err)
	}
	if got, err := e.ReadDirectory(t.Context(), "d"); err != nil || len(got) != 2 || got[1] != info {
		t.Error(got, err)
	}
	if got, err := e.ReadFile(t.Context(), "d/a", 0, -1); err != nil || !bytes.Equal(got, content) {
		t.Error(len(got), err)
	}
	if got, err := e.ReadFile(t.Context(), "d/a", int64(len(content)-5), 5); err != nil || !bytes.Equal(got, content[len(content)-5:]) {
		t.Error(len(got), err)
	}
	_, err := e.ReadFile(t.Context(), "d/a", 0, 100) // the far end sends more than was asked for
	wantKind(t, err, tool.ProtocolMismatch)
	_, err = e.ReadFile(t.Context(), "d/a", -1, 100)
	wantKind(t, err, tool.InvalidParams)
	if got, err := e.WriteFile(t.Context(), "d/a", content); err != nil || got != info || !bytes.Equal(written, content) {
		t.Error(got, err)
	}
	_, err = e.WriteFile(t.Context(), "d/a", make([]byte, backends.MaxFileRead+1))
	wantKind(t, err, tool.InvalidParams)

	other := open(t, newFar(wire.CapBulk), binding(), Options{})
	_, err = other.Stat(t.Context(), "a")
	wantKind(t, err, tool.Unsupported)
}

func TestExportAsStream(t *testing.T) {
	content := make([]byte, 9<<20+3)
	rand.Read(content)
	f := newFar(ourCaps...)
	f.on(wire.MethodExportStream, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		var in wire.Export
		err := r.Decode(&in)
		switch {
		case err != nil:
			return wire.Response{}, err
		case in.Token == "big":
			return wire.Response{Stream: io.NopCloser(rand.Reader), Size: maxExport + 1}, nil
		case in.Token == "short":
			return wire.Response{Stream: io.NopCloser(strings.NewReader("x")), Size: 1 << 20}, nil
		case in.Token != "t":
			return wire.Response{}, tool.Errorf(tool.ArtifactNotFound, "no such export")
		}
		return wire.Response{Stream: io.NopCloser(bytes.NewReader(content)), Size: int64(len(content))}, nil
	})
	f.says(wire.MethodExportClose, struct{}{}, nil)
	e := open(t, f, binding(), Options{})
	r, err := e.Export(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	_, err = e.Export(t.Context(), "x")
	wantKind(t, err, tool.ArtifactNotFound)
	_, err = e.Export(t.Context(), "big")
	wantKind(t, err, tool.ArtifactTooLarge)
	if r, err = e.Export(t.Context(), "short"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil {
		t.Error("an export that ended early was taken")
	}
	r.Close()
	if n := f.asked(wire.MethodExportClose); n != 4 {
		t.Errorf("%d of 4 exports were closed", n)
	}
}

// TestExportNeverClosed: a far end that does not confirm export/close keeps nobody from
// what it has sent, nor from the next export, nor from letting go.
func TestExportNeverClosed(t *testing.T) {
	f := newFar(ourCaps...)
	f.on(wire.MethodExportStream, func(context.Context, *wire.Request) (wire.Response, error) {
		return wire.Response{Stream: io.NopCloser(strings.NewReader("all")), Size: 3}, nil
	})
	hang := make(chan struct{})
	defer close(hang)
	f.on(wire.MethodExportClose, func(context.Context, *wire.Request) (wire.Response, error) {
		<-hang // whatever is cancelled
		return wire.Response{}, nil
	})
	e := open(t, f, binding(), Options{CancelGrace: 10 * time.Minute})
	for range 2 {
		r, err := e.Export(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != "all" {
			t.Errorf("%q, %v", got, err)
		}
		start := time.Now()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		// Without the courtesy's own limit it is the grace's ten minutes.
		if took := time.Since(start); took > time.Minute {
			t.Errorf("closing took %s", took)
		}
	}
	if n := f.asked(wire.MethodExportClose); n != 2 {
		t.Errorf("%d of 2 exports were closed", n)
	}
	if n := e.closing.Load(); n != 2 {
		t.Errorf("%d ends are awaited", n)
	}
}

func TestExportInChunks(t *testing.T) {
	full := bytes.Repeat([]byte("0123456789abcdef"), wire.ExportChunk/16)
	for name, test := range map[string]struct {
		chunks []wire.ExportData
		want   int
		kind   tool.Kind
	}{
		"some":           {[]wire.ExportData{{Data: full}, {Data: full}, {Data: []byte("end"), EOF: true}}, 2*len(full) + 3, ""},
		"an empty last":  {[]wire.ExportData{{Data: []byte("a")}, {EOF: true}}, 1, ""},
		"nothing":        {[]wire.ExportData{{EOF: true}}, 0, ""},
		"an empty chunk": {[]wire.ExportData{{Data: []byte("a")}, {}}, 1, tool.ProtocolMismatch},
		"a long chunk":   {[]wire.ExportData{{Data: append([]byte("x"), full...)}}, 0, tool.ProtocolMismatch},
		"an error":       {[]wire.ExportData{{Data: []byte("a")}}, 1, tool.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar()
			offset, i := int64(0), 0
			f.on(wire.MethodExportRead, func(_ context.Context, r *wire.Request) (wire.Response, error) {
				var in wire.ExportRead
				if err := r.Decode(&in); err != nil || in.Token != "t" || in.Offset != offset {
					t.Errorf("%+v, %v; the offset is %d", in, err, offset)
				}
				if i == len(test.chunks) {
					return wire.Response{}, errTest
				}
				offset += int64(len(test.chunks[i].Data))
				i++
				return wire.Response{Data: test.chunks[i-1]}, nil
			})
			f.says(wire.MethodExportClose, struct{}{}, nil)
			e := open(t, f, binding(), Options{})
			r, err := e.Export(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if len(got) != test.want || (err == nil) != (test.kind == "") {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if test.kind != "" {
				wantKind(t, err, test.kind)
			}
			r.Close()
			if f.asked(wire.MethodExportClose) != 1 {
				t.Error("the export was not closed")
			}
		})
	}
}
