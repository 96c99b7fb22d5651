package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

func exportTests() []test {
	return []test{
		{name: "Exports", run: testExports},
		{name: "LargeExports", needs: needShell, run: testLargeExports},
	}
}

// exported is what present_artifact answers.
type exported struct {
	Token string `json:"execution_export"`
	Name  string `json:"name"`
	Size  int64  `json:"size"`
}

func (w *world) present(path string) exported {
	w.Helper()
	res := w.call("present_artifact", args{"path": path})
	var e exported
	if len(res.Content) != 1 || json.Unmarshal([]byte(res.Content[0].Text), &e) != nil || e.Token == "" {
		w.Fatalf("present_artifact %s: %s", path, brief(res.Content))
	}
	return e
}

func testExports(w *world) {
	w.write("dir.txt", []byte("first"))
	w.call("write_file", args{"path": "d/über-pic.png", "content": "old content"})
	e := w.present("d/über-pic.png")
	if e.Name != "über-pic.png" || e.Size != 11 {
		w.Errorf("presented %+v", e)
	}
	if w.h.Lacks.Shell == "" {
		w.sh("echo changed in place > d/über-pic.png")
	}
	w.call("write_file", args{"path": "d/über-pic.png", "content": "new"})
	r, err := w.env.Export(w.Context(), e.Token)
	if err != nil {
		w.Fatal(describe(err))
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(data) != "old content" {
		w.Errorf("the snapshot is %q, %v", data, err)
	}
	if r, err := w.env.Export(w.Context(), e.Token); err == nil {
		data, err := io.ReadAll(r)
		w.Errorf("the token works twice: %q, %v", data, errors.Join(err, r.Close()))
	}
	empty := func() string { w.write("empty", nil); return w.present("empty").Token }()
	r, err = w.env.Export(w.Context(), empty)
	if err != nil {
		w.Fatal(describe(err))
	}
	if data, err := io.ReadAll(r); len(data) != 0 || errors.Join(err, r.Close()) != nil {
		w.Errorf("the empty snapshot is %q, %v", data, err)
	}
	// Closing early is no harm.
	w.write("big", make([]byte, 4<<20))
	r, err = w.env.Export(w.Context(), w.present("big").Token)
	if err != nil {
		w.Fatal(describe(err))
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); errors.Join(err, r.Close()) != nil {
		w.Errorf("closed early: %v", err)
	}
	for _, path := range []string{"none", "d", ""} {
		w.refused("present_artifact", args{"path": path}, tool.InvalidParams)
	}
	if _, err := w.env.Export(w.Context(), strings.Repeat("0", 32)); err == nil {
		w.Error("an unknown token exports something")
	}
	w.holds("dir.txt", []byte("first"))
}

func testLargeExports(w *world) {
	const largest = 256 << 20
	// Holes are enough, and quick.
	w.sh(fmt.Sprintf("dd if=/dev/null of=large bs=1 seek=%d 2>/dev/null && dd if=/dev/null of=larger bs=1 seek=%d 2>/dev/null", largest, 257<<20))
	if said := w.refused("present_artifact", args{"path": "larger"}, tool.ArtifactTooLarge, tool.InvalidParams); !strings.Contains(said, "256 MiB") {
		w.Errorf("the refusal does not name the limit: %s", said)
	}
	e := w.present("large")
	r, err := w.env.Export(w.Context(), e.Token)
	if err != nil {
		w.Fatal(describe(err))
	}
	n, err := io.Copy(io.Discard, r)
	if err := errors.Join(err, r.Close()); err != nil || n != largest || e.Size != largest {
		w.Errorf("%d bytes of %d, %v", n, e.Size, err)
	}
}
