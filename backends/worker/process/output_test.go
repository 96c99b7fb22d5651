//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// pattern is what stands at an offset of the test output: it repeats after a
// prime, so never as the ring does.
func pattern(offset int64, n int) []byte {
	const prime = 1_000_003
	period := patternPeriod()
	p := make([]byte, 0, n)
	for len(p) < n {
		at := int((offset + int64(len(p))) % prime)
		p = append(p, period[at:min(prime, at+n-len(p))]...)
	}
	return p
}

var patternPeriod = sync.OnceValue(func() []byte {
	p := make([]byte, 1_000_003)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(p) // never fails
	return p
})

func TestOutputRing(t *testing.T) {
	dir := t.TempDir()
	for _, memory := range []int{0, memoryOutput} {
		o := &output{base: filepath.Join(dir, fmt.Sprint("p", memory)), memory: memory}
		check := func(o *output) {
			t.Helper()
			total, base, _ := o.state()
			if want := max(0, total-KeepOutput); base != want {
				t.Fatalf("base is %d, not %d", base, want)
			}
			for range 8 {
				at := rand.Int64N(total + 1)
				buf := make([]byte, 1+rand.IntN(3*maxPiece))
				start, n, err := o.readAt(buf, at)
				if err != nil || start != max(at, base) || int64(n) != min(int64(len(buf)), total-start) {
					t.Fatalf("read %d at %d of %d..%d: %d at %d, %v", len(buf), at, base, total, n, start, err)
				}
				if !bytes.Equal(buf[:n], pattern(start, n)) {
					t.Fatalf("wrong bytes at %d", start)
				}
			}
		}
		for total := int64(0); total < 2*ringSize+12345; {
			n := 1 + rand.IntN(5<<20)
			if total < memoryOutput {
				n = 1 + rand.IntN(100_000)
			}
			if k, err := o.Write(pattern(total, n)); k != n || err != nil {
				t.Fatal(k, err)
			}
			total += int64(n)
			if got, _, _ := o.state(); got != total {
				t.Fatalf("total is %d, not %d", got, total)
			}
			check(o)
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
		check(o)
		later, err := openOutput(o.base)
		if err != nil {
			t.Fatal(err)
		}
		if a, _, _ := o.state(); later.total != a || !later.closed {
			t.Errorf("found again with %d of %d bytes", later.total, a)
		}
		check(later)
		info, err := os.Stat(o.base + outputSuffix)
		if err != nil || info.Size() != ringSize {
			t.Errorf("on disk: %v %v", info.Size(), err)
		}
		if err := o.remove(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left on disk: %v %v", left, err)
	}
}

// overtaken is a file whose reader is overtaken by the writer, once.
type overtaken struct {
	ringFile
	meanwhile func()
}

func (f *overtaken) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.ringFile.ReadAt(p[:max(1, len(p)/2)], offset)
	if f.meanwhile != nil {
		f.meanwhile()
		f.meanwhile = nil
	}
	return n, err
}

// A reader of the oldest bytes never gets newer ones when a writer goes round.
func TestOutputOverwrittenWhileRead(t *testing.T) {
	o := &output{base: filepath.Join(t.TempDir(), "p")}
	for total := int64(0); total < ringSize; total += 1 << 20 {
		_, _ = o.Write(pattern(total, 1<<20)) // takes everything
	}
	o.file = &overtaken{o.file, func() { _, _ = o.Write(pattern(ringSize, 9<<20)) }}
	buf := make([]byte, 1<<20)
	start, n, err := o.readAt(buf, 0)
	if err != nil || start != ringSize+9<<20-KeepOutput || n != len(buf) || !bytes.Equal(buf, pattern(start, n)) {
		t.Errorf("%d bytes at %d, %v", n, start, err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
}

// Two GiB that nobody reads: counted, bounded on disk, no memory.
func TestUnreadOutput(t *testing.T) {
	const size = 2 << 30
	m, r := newTest(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := start(t, m, fmt.Sprintf("head -c %d /dev/zero; printf END", size))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := m.Wait(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	got := r.until(t, p.ID, outputClosed).Process
	runtime.ReadMemStats(&after)
	if got.TotalBytes != size+3 || got.LogBaseOffset != size+3-KeepOutput {
		t.Errorf("%d bytes, kept from %d on", got.TotalBytes, got.LogBaseOffset)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 16<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(m.registry.dir, p.ID+outputSuffix), &st); err != nil || st.Blocks*512 > ringSize+1<<20 {
		t.Errorf("%d bytes on disk, %v", st.Blocks*512, err)
	}
	tail, err := m.Read(t.Context(), p.ID, tool.ReadOptions{MaxBytes: 5})
	if err != nil || string(tail.Output) != "\x00\x00END" || tail.StartOffset != size-2 || tail.EndOffset != size+3 || tail.Truncated {
		t.Errorf("tail: %q %+v %v", tail.Output, tail, err)
	}
	at := int64(10)
	old, err := m.Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: &at})
	if err != nil || !old.Truncated || old.StartOffset != got.LogBaseOffset || len(old.Output) != DefaultReadBytes {
		t.Errorf("what is gone: %+v %v", old.StartOffset, err)
	}
}

// Small pieces that follow on one another make a pipe wide; rare ones leave it as it is.
func TestRush(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	c, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	size := func() (n int) {
		if err := c.Control(func(fd uintptr) { n, err = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	narrow := size()
	var rare rush
	for range 4 * rushPieces {
		rare.last = time.Now().Add(-2 * rushInterval)
		rare.took(1, c)
	}
	if n := size(); n != narrow {
		t.Errorf("a pipe with rare pieces holds %d bytes, and held %d", n, narrow)
	}
	var fast rush
	for range 4 * rushPieces {
		fast.last = time.Now()
		fast.took(1, c)
	}
	if n := size(); n != maxPiece {
		t.Errorf("a pipe with many pieces holds %d bytes, not %d", n, maxPiece)
	}
}

func TestRead(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "printf 0123456789; read x; printf abc; read x")
	see(t, m, p.ID, "0123456789")
	at := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name  string
		o     tool.ReadOptions
		want  string
		start int64
	}{
		{"all", tool.ReadOptions{}, "0123456789", 0},
		{"tail", tool.ReadOptions{MaxBytes: 3}, "789", 7},
		{"from", tool.ReadOptions{OffsetBytes: at(4), MaxBytes: 3}, "456", 4},
		{"end", tool.ReadOptions{OffsetBytes: at(10)}, "", 10},
		{"beyond", tool.ReadOptions{OffsetBytes: at(100)}, "", 100},
	} {
		r, err := m.Read(t.Context(), p.ID, tt.o)
		if err != nil || string(r.Output) != tt.want || r.StartOffset != tt.start || r.EndOffset != tt.start+int64(len(tt.want)) ||
			r.TotalBytes != 10 || r.Truncated || r.TimedOut {
			t.Errorf("%s: %q %+v %v", tt.name, r.Output, r, err)
		}
	}
	r, err := m.Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: at(10), Wait: time.Millisecond})
	if err != nil || !r.TimedOut || len(r.Output) != 0 || r.Duration < time.Millisecond {
		t.Errorf("waited in vain: %+v %v", r, err)
	}
	if _, err := m.Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: at(-1)}); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a negative offset: %v", err)
	}
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			r, err := m.Read(context.Background(), p.ID, tool.ReadOptions{OffsetBytes: at(10), Wait: patience, MinDwell: 5 * time.Millisecond})
			if err != nil || string(r.Output) != "abc" || r.TimedOut {
				t.Errorf("waited: %q %v", r.Output, err)
			}
		})
	}
	if _, err := m.Write(t.Context(), p.ID, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
	if _, err := m.Write(t.Context(), p.ID, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	// Nothing more comes, so nothing waits.
	r, err = m.Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: at(13), Wait: time.Hour})
	if err != nil || r.TimedOut || len(r.Output) != 0 {
		t.Errorf("at the end: %+v %v", r, err)
	}
}

// What a process writes while it is read, as its last, is not taken for read.
func TestReadWhileItEnds(t *testing.T) {
	m, r := newTest(t)
	p := start(t, m, "printf abc; read x; printf def")
	see(t, m, p.ID, "abc")
	offset := int64(0)
	read, err := m.Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: &offset, Buffer: func(size int) []byte {
		if _, err := m.Write(t.Context(), p.ID, []byte("\n")); err != nil {
			t.Error(err)
		}
		r.until(t, p.ID, outputClosed)
		return make([]byte, size)
	}})
	if err != nil || string(read.Output) != "abc" || read.Process.OutputClosed && read.EndOffset == read.TotalBytes {
		t.Errorf("%q is all of it: %+v %v", read.Output, read, err)
	}
}

// A full disk loses output, says so, and stops no process.
func TestOutputCannotBeKept(t *testing.T) {
	m, r := newTest(t)
	small := t.TempDir()
	if err := unix.Mount("none", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Logf("no mount here (%v): a directory stands for the full disk", err)
		small = filepath.Join(small, "missing")
	} else {
		t.Cleanup(func() {
			if err := unix.Unmount(small, 0); err != nil {
				t.Error(err)
			}
		})
	}
	p := m.newProc(m.newRecord(newID(), spec{}, tool.Unconfined, tool.Actor{}))
	p.out = &output{base: filepath.Join(small, "p")}
	s, err := m.prepare(p.id, request{line: "head -c 1000000 /dev/zero; echo done > done"})
	if err != nil {
		t.Fatal(err)
	}
	s.streams = []*streamTo{{merged: true}}
	if s.launcher, _, err = m.launcher(license{mode: tool.Unconfined}); err != nil {
		t.Fatal(err)
	}
	p.kept = true
	pidfd, err := p.spawn(s)
	if err != nil {
		t.Fatal(err)
	}
	m.work.Go(func() { p.follow(pidfd) })
	<-p.drained
	<-p.exited
	got := r.until(t, p.id, outputClosed).Process
	if !strings.Contains(got.LastError, "could not be kept") || got.TotalBytes >= 1_000_000 || got.ExitCode != 0 {
		t.Errorf("ended as %+v", got)
	}
	if _, err := os.Stat(filepath.Join(m.o.Root, "done")); err != nil {
		t.Error(err)
	}
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), journalFile)
	j, records, err := openJournal(path)
	if err != nil || len(records) != 0 {
		t.Fatal(records, err)
	}
	put := func(id, command string) {
		t.Helper()
		var r record
		r.ID, r.Command = id, command
		if err := j.put(r); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "1")
	put("b", "1")
	put("a", "2")
	put("c", "1")
	if err := j.drop("b"); err != nil {
		t.Fatal(err)
	}
	size := j.size
	if _, err := j.file.WriteString(`{"id":"c","comm`); err != nil { // as its writer's death leaves it
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		if j, records, err = openJournal(path); err != nil {
			t.Fatal(err)
		}
		if len(records) != 2 || records[0].ID != "a" || records[0].Command != "2" || records[1].ID != "c" {
			t.Fatalf("records are %+v", records)
		}
	}
	check()
	if j.size != size {
		t.Errorf("%d bytes of %d", j.size, size)
	}
	put("c", "2") // where the torn line was
	check()
	j.limit = 10
	put("c", "1") // compacts
	if j.size >= size {
		t.Errorf("compacted to %d bytes from %d", j.size, size)
	}
	check()
	var r record
	r.ID, r.Command = "d", strings.Repeat("x", maxRecord)
	if err := j.put(r); err == nil {
		t.Error("a giant record was taken")
	}
	if _, err := j.file.WriteString("not a record\n"); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a damaged journal: %v", err)
	}
}

// A journal that cannot be compacted, as on a disk that is nearly full, still takes
// records, and is compacted later.
func TestJournalWithoutRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), journalFile)
	inTheWay := filepath.Join(path+".new", "not empty")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	j, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	j.limit = 1
	var r record
	r.ID = "a"
	for range 3 {
		if err := j.put(r); err != nil {
			t.Fatal(err)
		}
	}
	if j.limit <= j.size {
		t.Errorf("of %d bytes, it is compacted again at once", j.size)
	}
	if err := os.RemoveAll(path + ".new"); err != nil {
		t.Fatal(err)
	}
	j.limit = 1
	if err := j.put(r); err != nil {
		t.Fatal(err)
	}
	if line := int64(len(r.appendJSON(nil)) + 1); j.size != line {
		t.Errorf("compacted to %d bytes, one line has %d", j.size, line)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}

func TestCapture(t *testing.T) {
	for _, tt := range []struct {
		name   string
		writes []string
		limit  int
		want   string
		cut    bool
	}{
		{"nothing", nil, 100, "", false},
		{"exactly", []string{"0123456789"}, 10, "0123456789", false},
		{"pieces", []string{"012", "3456", "789"}, 10, "0123456789", false},
		{"middle", []string{strings.Repeat("a", 500), strings.Repeat("b", 500)}, 60, strings.Repeat("a", 18) + "\n[963 bytes left out]\n" + strings.Repeat("b", 19), true},
		{"tiny", []string{"0123456789 and more"}, 10, "01234", true},
		{"characters", []string{strings.Repeat("é", 100)}, 40, strings.Repeat("é", 4) + "\n[184 bytes left out]\n" + strings.Repeat("é", 4), true},
	} {
		c := newCapture((tt.limit + 1) / 2)
		for _, w := range tt.writes {
			_, _ = c.Write([]byte(w))
		}
		got, cut := c.result(tt.limit)
		if string(got) != tt.want || cut != tt.cut {
			t.Errorf("%s: %q %v, not %q", tt.name, got, cut, tt.want)
		}
		if len(got) > tt.limit {
			t.Errorf("%s: %d bytes", tt.name, len(got))
		}
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		a, b int64
		x, y int
	}{{0, 0, 0, 0}, {10, 200, 10, 90}, {200, 10, 90, 10}, {200, 200, 50, 50}, {50, 50, 50, 50}} {
		if x, y := share(100, tt.a, tt.b); x != tt.x || y != tt.y {
			t.Errorf("share of %d and %d is %d and %d", tt.a, tt.b, x, y)
		}
	}
}
