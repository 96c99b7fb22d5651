package directory

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

const create = experimentalsys.O_CREAT | experimentalsys.O_RDWR

func TestReadOnly(t *testing.T) {
	dir, _ := world(t)
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("ours"), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	d := mount(t, dir, Options{ReadOnly: true})
	if got, errno := read(d, "a"); got != "ours" || errno != 0 {
		t.Errorf("read: %q, %v", got, errno)
	}
	for name, errno := range map[string]experimentalsys.Errno{
		"write":      second2(d.OpenFile("a", experimentalsys.O_WRONLY, 0)),
		"read-write": second2(d.OpenFile("a", experimentalsys.O_RDWR, 0)),
		"truncate":   second2(d.OpenFile("a", experimentalsys.O_TRUNC, 0)),
		"create":     second2(d.OpenFile("new", create, 0)),
		"mkdir":      d.Mkdir("new", 0o755),
		"rename":     d.Rename("a", "b"),
		"unlink":     d.Unlink("a"),
		"rmdir":      d.Rmdir("sub"),
		"link":       d.Link("a", "b"),
		"symlink":    d.Symlink("a", "b"),
		"utimes":     d.Utimens("a", 0, 0),
		"chmod":      d.Chmod("a", 0),
	} {
		if errno != experimentalsys.EROFS {
			t.Errorf("%s: %v", name, errno)
		}
	}
	f, errno := d.OpenFile("a", experimentalsys.O_RDONLY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if errno := f.Utimens(0, 0); errno != experimentalsys.EROFS {
		t.Errorf("utimes of an open file: %v", errno)
	}
	if errno := f.Truncate(0); errno != experimentalsys.EROFS {
		t.Errorf("truncate an open file: %v", errno)
	}
	if _, errno := f.Write([]byte("x")); errno == 0 {
		t.Error("a file open for reading was written")
	}
	for path, want := range map[string]experimentalsys.Errno{"sub": experimentalsys.EISDIR, "none": experimentalsys.ENOENT} {
		if _, errno := d.OpenFile(path, experimentalsys.O_WRONLY, 0); errno != want {
			t.Errorf("%s: %v", path, errno)
		}
	}
	if _, errno := d.OpenFile("a", create|experimentalsys.O_EXCL, 0); errno != experimentalsys.EEXIST {
		t.Errorf("create what is there: %v", errno)
	}
}

func second2(f experimentalsys.File, errno experimentalsys.Errno) experimentalsys.Errno {
	if f != nil {
		f.Close()
	}
	return errno
}

func TestErrors(t *testing.T) {
	dir, _ := world(t)
	d := mount(t, dir, Options{})
	for _, errno := range []experimentalsys.Errno{write(d, "file", "text"), d.Mkdir("dir", 0o755), d.Mkdir("dir/sub", 0o755), d.Mkdir("other", 0o755), d.Symlink("file", "link")} {
		if errno != 0 {
			t.Fatal(errno)
		}
	}
	open := func(path string, flag experimentalsys.Oflag) experimentalsys.Errno {
		return second2(d.OpenFile(path, flag, 0))
	}
	for _, tt := range []struct {
		name      string
		got, want experimentalsys.Errno
	}{
		{"open what is not there", open("none", 0), experimentalsys.ENOENT},
		{"open below a file", open("file/x", 0), experimentalsys.ENOTDIR},
		{"open a file with a slash", open("file/", 0), experimentalsys.ENOTDIR},
		{"open a file as a directory", open("file", experimentalsys.O_DIRECTORY), experimentalsys.ENOTDIR},
		{"open a directory to write", open("dir", experimentalsys.O_RDWR), experimentalsys.EISDIR},
		{"open a link itself", open("link", experimentalsys.O_NOFOLLOW), experimentalsys.ELOOP},
		{"create what is there", open("file", create|experimentalsys.O_EXCL), experimentalsys.EEXIST},
		{"create with a slash", open("new/", create), experimentalsys.EINVAL},
		{"a name that is too long", open(string(make([]byte, 300)), 0), experimentalsys.EINVAL},
		{"mkdir again", d.Mkdir("dir", 0o755), experimentalsys.EEXIST},
		{"mkdir below nothing", d.Mkdir("none/dir", 0o755), experimentalsys.ENOENT},
		{"rmdir a file", d.Rmdir("file"), experimentalsys.ENOTDIR},
		{"rmdir what holds something", d.Rmdir("dir"), experimentalsys.ENOTEMPTY},
		{"rmdir itself", d.Rmdir("."), experimentalsys.EINVAL},
		{"unlink a directory", d.Unlink("dir"), experimentalsys.EISDIR},
		{"unlink a file with a slash", d.Unlink("file/"), experimentalsys.ENOTDIR},
		{"rename over a directory", d.Rename("file", "dir"), experimentalsys.EISDIR},
		{"rename a directory over a full one", d.Rename("other", "dir"), experimentalsys.ENOTEMPTY},
		{"rename a directory over a file", d.Rename("dir", "file"), experimentalsys.ENOTDIR},
		{"rename a file to a slash", d.Rename("file", "new/"), experimentalsys.ENOTDIR},
		{"rename into itself", d.Rename("dir", "dir/sub/dir"), experimentalsys.EINVAL},
		{"link over something", d.Link("file", "dir"), experimentalsys.EEXIST},
		{"readlink of a file", second(d.Readlink("file")), experimentalsys.EINVAL},
		{"stat a file with a slash", second(d.Stat("file/")), experimentalsys.ENOTDIR},
		{"stat nothing", second(d.Lstat("none")), experimentalsys.ENOENT},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestFile(t *testing.T) {
	dir, _ := world(t)
	d := mount(t, dir, Options{})
	f, errno := d.OpenFile("file", create, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	step := func(what string, n int, errno experimentalsys.Errno, want int) {
		t.Helper()
		if errno != 0 || n != want {
			t.Errorf("%s: %d, %v", what, n, errno)
		}
	}
	n, errno := f.Write([]byte("hello"))
	step("write", n, errno, 5)
	n, errno = f.Pwrite([]byte("XY"), 1)
	step("pwrite", n, errno, 2)
	buf := make([]byte, 8)
	n, errno = f.Pread(buf, 3)
	step("pread", n, errno, 2)
	n, errno = f.Read(buf)
	step("read at the end", n, errno, 0)
	if errno := f.SetAppend(true); errno != 0 || !f.IsAppend() {
		t.Errorf("set append: %v", errno)
	}
	if _, errno := f.Seek(0, io.SeekStart); errno != 0 {
		t.Error(errno)
	}
	n, errno = f.Write([]byte("+"))
	step("append", n, errno, 1)
	if errno := f.SetAppend(false); errno != 0 || f.IsAppend() {
		t.Errorf("unset append: %v", errno)
	}
	if _, errno := f.Seek(0, io.SeekStart); errno != 0 {
		t.Error(errno)
	}
	n, errno = f.Write([]byte("H"))
	step("write over", n, errno, 1)
	for what, errno := range map[string]experimentalsys.Errno{
		"negative offset":   second(f.Pread(buf, -1)),
		"negative pwrite":   second(f.Pwrite(buf, -1)),
		"negative size":     f.Truncate(-1),
		"negative position": second(f.Seek(-1, io.SeekStart)),
		"no whence":         second(f.Seek(0, 7)),
	} {
		if errno != experimentalsys.EINVAL {
			t.Errorf("%s: %v", what, errno)
		}
	}
	const when = int64(1500000000_123456000)
	if errno := f.Utimens(experimentalsys.UTIME_OMIT, when); errno != 0 {
		t.Error(errno)
	}
	st, errno := f.Stat()
	if errno != 0 || st.Mtim != when || st.Size != 6 || st.Ino == 0 {
		t.Errorf("stat: %+v, %v", st, errno)
	}
	if errno := f.Datasync(); errno != 0 {
		t.Error(errno)
	}
	if errno := f.Close(); errno != 0 {
		t.Error(errno)
	}
	if errno := f.Close(); errno != 0 || d.o.Table.open != 0 {
		t.Errorf("closing again: %v, and %d files are open", errno, d.o.Table.open)
	}
	if got, _ := read(d, "file"); got != "HXYlo+" {
		t.Errorf("the file holds %q", got)
	}
}

// TestDirectory reads a directory in pieces, sorted, and again from its beginning.
func TestDirectory(t *testing.T) {
	dir, _ := world(t)
	var want []string
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		want = append(want, name)
	}
	slices.Sort(want)
	d := mount(t, dir, Options{})
	f, errno := d.OpenFile(".", experimentalsys.O_DIRECTORY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	for range 2 {
		var got []string
		for {
			entries, errno := f.Readdir(2)
			if errno != 0 {
				t.Fatal(errno)
			}
			for _, e := range entries {
				got = append(got, e.Name)
				if e.Type != 0 {
					t.Errorf("%s is %v", e.Name, e.Type)
				}
			}
			if len(entries) < 2 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v", got)
		}
		if _, errno := f.Seek(0, io.SeekStart); errno != 0 {
			t.Fatal(errno)
		}
	}
	for what, errno := range map[string]experimentalsys.Errno{
		"read": second(f.Read(make([]byte, 1))), "write": second(f.Write([]byte("x"))), "seek": second(f.Seek(1, io.SeekStart)),
		"truncate": f.Truncate(0), "append": f.SetAppend(true),
	} {
		if errno != experimentalsys.EISDIR {
			t.Errorf("%s a directory: %v", what, errno)
		}
	}
	if isDir, _ := f.IsDir(); !isDir {
		t.Error("it is no directory")
	}
}

func TestTooManyFiles(t *testing.T) {
	dir, _ := world(t)
	table := &Table{Max: 2}
	d := mount(t, dir, Options{Table: table})
	for range 2 {
		f, errno := d.OpenFile(".", 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		defer f.Close()
	}
	if _, errno := d.OpenFile(".", 0, 0); errno != experimentalsys.EIO || table.Precise() != wasiMfile {
		t.Errorf("one file too many: %v", errno)
	}
	if table.Precise() != 0 {
		t.Error("an error number was told twice")
	}
}

func TestFixedTimes(t *testing.T) {
	dir, _ := world(t)
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644))
	epoch := time.Unix(1000, 0).UnixNano()
	d := mount(t, dir, Options{FixedTimes: true, Epoch: epoch})
	st, errno := d.Stat("a")
	if errno != 0 || st.Mtim != epoch || st.Atim != epoch || st.Ctim != epoch || st.Size != 1 {
		t.Errorf("%+v, %v", st, errno)
	}
	if st, errno := d.Stat("."); errno != 0 || st.Size != 0 || st.Mode&fs.ModeDir == 0 {
		t.Errorf("%+v, %v", st, errno)
	}
}

// A deterministic guest sees the same numbers of files wherever these lie, and whatever
// the system does with those of files that are gone; and yet which are the same.
func TestFixedNumbers(t *testing.T) {
	runs := make([][]sys.Inode, 2)
	for run := range runs {
		dir, _ := world(t)
		d := mount(t, dir, Options{FixedTimes: true})
		met := func(st sys.Stat_t, errno experimentalsys.Errno) sys.Inode {
			t.Helper()
			if errno != 0 || st.Dev != 1 {
				t.Fatalf("device %d: %v", st.Dev, errno)
			}
			runs[run] = append(runs[run], st.Ino)
			return st.Ino
		}
		do := func(errno experimentalsys.Errno) {
			t.Helper()
			if errno != 0 {
				t.Fatal(errno)
			}
		}
		if run == 1 { // the second has other files before, between and after
			must(t, os.WriteFile(filepath.Join(dir, "before"), nil, 0o644))
		}
		do(write(d, "a", "x"))
		do(d.Link("a", "b"))
		do(d.Mkdir("sub", 0))
		a := met(d.Stat("a"))
		if b := met(d.Stat("b")); b != a {
			t.Errorf("two names of one file: %d and %d", a, b)
		}
		if sub := met(d.Stat("sub")); sub == a {
			t.Errorf("two files: %d", a)
		}
		f, errno := d.OpenFile("a", experimentalsys.O_RDONLY, 0)
		do(errno)
		do(d.Unlink("a"))
		if again := met(d.Stat("b")); again != a {
			t.Errorf("with one name less: %d and %d", a, again)
		}
		do(write(d, "c", "x"))
		do(d.Rename("c", "b")) // in its place
		if open := met(f.Stat()); open != a {
			t.Errorf("open and removed: %d and %d", a, open)
		}
		if ino, errno := f.Ino(); errno != 0 || ino != a {
			t.Errorf("open and removed: %d and %d, %v", a, ino, errno)
		}
		do(f.Close())
		if run == 1 {
			must(t, os.WriteFile(filepath.Join(dir, "between"), nil, 0o644))
		}
		seen := map[sys.Inode]bool{a: true}
		for i, end := range []func(string) experimentalsys.Errno{ // most systems give each the number of the one before
			d.Unlink,
			func(name string) experimentalsys.Errno { return d.Rename("b", name) },
			d.Unlink,
		} {
			name := fmt.Sprint("new", i)
			do(write(d, name, "x"))
			n := met(d.Stat(name))
			if seen[n] {
				t.Errorf("the number %d comes again", n)
			}
			seen[n] = true
			do(end(name))
		}
		do(d.Rmdir("sub"))
		do(d.Mkdir("sub", 0))
		met(d.Stat("sub"))
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Errorf("%v and %v", runs[0], runs[1])
	}
}
