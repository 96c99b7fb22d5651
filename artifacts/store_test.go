package artifacts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func openStore(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newStore(t *testing.T) (*Store, string, *clock) {
	t.Helper()
	c := newClock()
	dir := filepath.Join(t.TempDir(), "artifacts")
	return openStore(t, dir, Options{Now: c.Now}), dir, c
}

func publish(t *testing.T, s *Store, session, name, content string) Artifact {
	t.Helper()
	a, err := s.Publish(t.Context(), PublishRequest{
		SessionID: session, Name: name, SourcePath: "out/" + name, Profile: "local", Size: int64(len(content)),
	}, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// files lists what the store holds on disk, its lock aside.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockFile && d.Name() != "bell" {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPublishDescribesAndKeeps(t *testing.T) {
	s, dir, _ := newStore(t)
	a := publish(t, s, "s-1", "the plan ünd more.md", "# Plan\n")
	sum := sha256.Sum256([]byte("# Plan\n"))
	want := Artifact{
		ID: "sha256:" + hex.EncodeToString(sum[:]), SessionID: "s-1", Name: "the plan ünd more.md",
		MediaType: "text/markdown", Size: 7, CreatedAt: a.CreatedAt,
		Source: Source{Path: "out/the plan ünd more.md", Profile: "local"},
		URI:    "caisson-artifact:/s-1/sha256:" + hex.EncodeToString(sum[:]) + "/the%20plan%20%C3%BCnd%20more.md",
	}
	if a != want {
		t.Errorf("published %+v\nwant %+v", a, want)
	}
	if a.CreatedAt.IsZero() {
		t.Error("no time")
	}
	for _, find := range map[string]func() (Artifact, error){
		"Find":     func() (Artifact, error) { return s.Find(a.ID) },
		"reopened": func() (Artifact, error) { return openStore(t, dir, Options{}).Find(a.ID) },
	} {
		if got, err := find(); err != nil || got != a {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "blobs", hex.EncodeToString(sum[:])))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o400 {
		t.Errorf("the content has mode %v", info.Mode())
	}
	if dirInfo, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && dirInfo.Mode().Perm() != 0o700 {
		t.Errorf("the store has mode %v, %v", dirInfo.Mode(), err)
	}
}

func TestOneContentIsStoredOnce(t *testing.T) {
	s, dir, _ := newStore(t)
	a := publish(t, s, "s-1", "a.txt", "same")
	b := publish(t, s, "s-2", "b.txt", "same")
	again := publish(t, s, "s-1", "a.txt", "same")
	if a.ID != b.ID || a.URI == b.URI || again.URI != a.URI || !again.CreatedAt.After(a.CreatedAt) {
		t.Errorf("a %+v\nb %+v\nagain %+v", a, b, again)
	}
	var blobs, records int
	for _, f := range files(t, dir) {
		switch {
		case strings.HasPrefix(f, "blobs/"):
			blobs++
		case strings.HasPrefix(f, "index/"):
			records++
		default:
			t.Errorf("left over: %s", f)
		}
	}
	if blobs != 1 || records != 2 {
		t.Errorf("%d contents and %d records", blobs, records)
	}

	if err := s.Delete(t.Context(), a.URI); err != nil {
		t.Fatal(err)
	}
	if data, _, err := s.Read(b.ID, 0, 0); err != nil || string(data) != "same" {
		t.Errorf("the content went with its first reference: %q, %v", data, err)
	}
	if err := s.Delete(t.Context(), b.URI); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := os.Remove(s.Bell()); err != nil {
		t.Errorf("nobody could hear of it: %v", err)
	}
	if err := s.Delete(t.Context(), b.URI); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, _, err := s.Read(b.ID, 0, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("read of what was deleted: %v", err)
	}
}

// endless yields zeros and counts them, so that a test sees how much was read.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read += int64(len(p))
	return len(p), nil
}

func TestPublishRefusals(t *testing.T) {
	broken := errors.New("the line is cut")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		req  PublishRequest
		in   io.Reader
		want error
	}{
		"too large by its word":   {req: PublishRequest{Size: MaxSize + 1}, in: strings.NewReader(""), want: ErrTooLarge},
		"too large without words": {req: PublishRequest{Size: -1}, in: &endless{}, want: ErrTooLarge},
		"longer than declared":    {req: PublishRequest{Size: 3}, in: strings.NewReader("four"), want: ErrSize},
		"shorter than declared":   {req: PublishRequest{Size: 5}, in: strings.NewReader("four"), want: ErrSize},
		"endless, declared":       {req: PublishRequest{Size: 10}, in: &endless{}, want: ErrSize},
		"reader fails":            {req: PublishRequest{Size: 9}, in: io.MultiReader(strings.NewReader("four"), iotest.ErrReader(broken)), want: broken},
		"cancelled":               {ctx: cancelled, req: PublishRequest{Size: 4}, in: strings.NewReader("four"), want: context.Canceled},
		"no session":              {req: PublishRequest{SessionID: "..", Size: 4}, in: strings.NewReader("four"), want: ErrInvalid},
		"session with slash":      {req: PublishRequest{SessionID: "a/b", Size: 4}, in: strings.NewReader("four"), want: ErrInvalid},
		"name is a path":          {req: PublishRequest{Name: "a/b", Size: 4}, in: strings.NewReader("four"), want: ErrInvalid},
		"name too long":           {req: PublishRequest{Name: strings.Repeat("n", 256), Size: 4}, in: strings.NewReader("four"), want: ErrInvalid},
		"name is not UTF-8":       {req: PublishRequest{Name: "\xff", Size: 4}, in: strings.NewReader("four"), want: ErrInvalid},
		"source path too long":    {req: PublishRequest{SourcePath: strings.Repeat("p", maxSource+1), Size: 4}, in: strings.NewReader("four"), want: ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, _ := newStore(t)
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			if tt.req.SessionID == "" {
				tt.req.SessionID = "s-1"
			}
			if tt.req.Name == "" {
				tt.req.Name = "name"
			}
			if a, err := s.Publish(tt.ctx, tt.req, tt.in); !errors.Is(err, tt.want) {
				t.Fatalf("published %+v, %v; want %v", a, err, tt.want)
			}
			if e, ok := tt.in.(*endless); ok && e.read > MaxSize+chunk {
				t.Errorf("%d bytes were read of what was to be refused", e.read)
			}
			if left := files(t, dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestPublishOfTheLargest(t *testing.T) {
	s, _, _ := newStore(t)
	for _, declared := range []int64{MaxSize, -1} {
		a, err := s.Publish(t.Context(), PublishRequest{SessionID: "s-1", Name: "zeros", Size: declared},
			io.LimitReader(&endless{}, MaxSize))
		if err != nil || a.Size != MaxSize {
			t.Fatalf("published %+v, %v", a, err)
		}
		if data, eof, err := s.Read(a.ID, MaxSize-3, 10); err != nil || !eof || !bytes.Equal(data, []byte{0, 0, 0}) {
			t.Errorf("its end: %v, %v, %v", data, eof, err)
		}
	}
}

func TestReadRanges(t *testing.T) {
	s, _, _ := newStore(t)
	a := publish(t, s, "s-1", "digits", "0123456789")
	for _, tt := range []struct {
		offset, length int64
		want           string
		eof            bool
	}{
		{0, 4, "0123", false},
		{4, 6, "456789", true},
		{4, 60, "456789", true},
		{0, 0, "0123456789", true},
		{8, -1, "89", true},
		{10, 5, "", true},
		{1 << 40, 5, "", true},
	} {
		data, eof, err := s.Read(a.ID, tt.offset, tt.length)
		if err != nil || string(data) != tt.want || eof != tt.eof {
			t.Errorf("Read(%d, %d) = %q, %v, %v", tt.offset, tt.length, data, eof, err)
		}
	}
	if _, _, err := s.Read(a.ID, -1, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative offset: %v", err)
	}
	for _, id := range []string{"", "sha256:", "sha256:../../secret", a.ID[7:], strings.ToUpper(a.ID)} {
		if _, _, err := s.Read(id, 0, 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("Read(%q): %v", id, err)
		}
	}
	if data, eof, err := s.Read(publish(t, s, "s-1", "empty", "").ID, 0, 0); err != nil || !eof || len(data) != 0 {
		t.Errorf("the empty content: %q, %v, %v", data, eof, err)
	}
}

func TestListIsOrderedAndSkipsWhatIsTorn(t *testing.T) {
	s, dir, _ := newStore(t)
	a := publish(t, s, "s-1", "a", "1")
	b := publish(t, s, "s-2", "b", "2")
	c := publish(t, s, "s-1", "c", "3")
	record, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(recordPath("s-1", a.ID, "a"))))
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, "index", "s-1", strings.Repeat("0", 64)+"-00.json")
	for path, data := range map[string]string{
		torn: `{"id":`,
		filepath.Join(dir, "index", "s-1", "notes.txt"):                       "not ours",
		filepath.Join(dir, "index", "s-2", strings.Repeat("1", 64)+"-0.json"): string(record), // somebody copied it
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for session, want := range map[string][]Artifact{"s-1": {a, c}, "s-2": {b}, "": {a, b, c}, "unknown": {}} {
		got, err := s.List(session)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("List(%q) = %v, %v", session, got, err)
		}
	}
	if _, err := s.List("../s-1"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a session with a slash: %v", err)
	}
	if _, err := os.Stat(torn); err != nil {
		t.Errorf("the torn record was not left alone: %v", err)
	}
}

func TestSave(t *testing.T) {
	s, _, _ := newStore(t)
	a := publish(t, s, "s-1", "a.txt", "new")
	dir := t.TempDir()
	path := filepath.Join(dir, "saved.txt")
	if err := s.Save(t.Context(), a.ID, path, false); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "new" {
		t.Fatalf("saved %q, %v", data, err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), a.ID, path, false); !errors.Is(err, ErrExists) {
		t.Errorf("over a file: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file was overwritten: %q", data)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), a.ID, dangling, false); !errors.Is(err, ErrExists) {
		t.Errorf("over a dangling link: %v", err)
	}
	if err := s.Save(t.Context(), a.ID, path, true); err != nil {
		t.Errorf("told to overwrite: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "new" {
		t.Errorf("not overwritten: %q", data)
	}
	for name, err := range map[string]error{
		"relative":     s.Save(t.Context(), a.ID, "saved.txt", false),
		"no directory": s.Save(t.Context(), a.ID, filepath.Join(dir, "none", "x"), true),
		"a directory":  s.Save(t.Context(), a.ID, dir, true),
		"unknown":      s.Save(t.Context(), "sha256:"+strings.Repeat("0", 64), filepath.Join(dir, "x"), false),
	} {
		if err == nil {
			t.Errorf("%s: saved", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

func TestPlaceNeverReplacesWhatAppeared(t *testing.T) {
	dir := t.TempDir()
	tmp, path := filepath.Join(dir, "tmp"), filepath.Join(dir, "path")
	for file, text := range map[string]string{tmp: "new", path: "mine"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := place(tmp, path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("placed over a file: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file is %q", data)
	}
}

func TestExpire(t *testing.T) {
	s, dir, clock := newStore(t)
	old := publish(t, s, "s-1", "old", "shared")
	publish(t, s, "s-1", "old too", "alone")
	renewed := publish(t, s, "s-1", "renewed", "renewed")
	clock.advance(time.Hour)
	young := publish(t, s, "s-2", "young", "shared")
	publish(t, s, "s-1", "renewed", "renewed")

	orphan := filepath.Join(dir, "blobs", strings.Repeat("a", 64))
	foreign := filepath.Join(dir, "blobs", "README")
	for _, path := range []string{orphan, foreign, filepath.Join(dir, "tmp", "arriving"), filepath.Join(dir, "tmp", "stale")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := clock.Now()
	for name, age := range map[string]time.Duration{"arriving": time.Minute, "stale": 25 * time.Hour} {
		if err := os.Chtimes(filepath.Join(dir, "tmp", name), now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}

	removed, err := s.Expire(t.Context(), 30*time.Minute)
	if err != nil || len(removed) != 2 || removed[0] != old {
		t.Errorf("removed %v, %v", removed, err)
	}
	if left, _ := s.List(""); len(left) != 2 || left[0] != young || left[1].URI != renewed.URI {
		t.Errorf("left %v", left)
	}
	if data, _, err := s.Read(old.ID, 0, 0); err != nil || string(data) != "shared" {
		t.Errorf("the shared content: %q, %v", data, err)
	}
	for path, stays := range map[string]bool{
		orphan: false, foreign: true, filepath.Join(dir, "tmp", "arriving"): true, filepath.Join(dir, "tmp", "stale"): false,
	} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
	if removed, err := s.Expire(t.Context(), 0); err != nil || len(removed) != 0 {
		t.Errorf("without a limit: %v, %v", removed, err)
	}
}

func TestURIs(t *testing.T) {
	id := "sha256:" + strings.Repeat("5", 64)
	for _, name := range []string{"a", "a b", "ü/", "100%", "?#", "bytes:%FF", "new\nline", `quote"`} {
		if strings.Contains(name, "/") {
			name = strings.Trim(name, "/")
		}
		uri := artifactURI("s-1", id, name)
		session, gotID, gotName, err := ParseURI(uri)
		if err != nil || session != "s-1" || gotID != id || gotName != name {
			t.Errorf("ParseURI(%q) = %q, %q, %q, %v", uri, session, gotID, gotName, err)
		}
	}
	for _, uri := range []string{
		"", "caisson-artifact:/", "caisson-artifact:/s/" + id, "file:///etc/passwd",
		"caisson-artifact:/../" + id + "/x", "caisson-artifact:/%2e%2e/" + id + "/x",
		"caisson-artifact:/a%2fb/" + id + "/x", "caisson-artifact:/s/" + id + "/a%2fb",
		"caisson-artifact:/s/sha256:zz/x", "caisson-artifact:/s/" + id + "/%zz",
		"caisson-artifact:/s/" + id + "/x/y",
	} {
		if _, _, _, err := ParseURI(uri); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseURI(%q): %v", uri, err)
		}
	}
}

func TestOpenOnAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); err == nil {
		t.Error("a file was opened as a store")
	}
}

// What cannot be written is named with its place, for whoever has to make room there.
func TestUnwritableStore(t *testing.T) {
	s, dir, _ := newStore(t)
	if err := os.Remove(filepath.Join(dir, tmpDir)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Publish(t.Context(), PublishRequest{SessionID: "s", Name: "x"}, strings.NewReader("x"))
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok || filepath.Dir(at.Path) != filepath.Join(dir, tmpDir) {
		t.Errorf("the error is %v", err)
	}
}
