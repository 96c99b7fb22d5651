package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// files does everything that package os can do in a directory, and says what is
// not as it should be.
func files(args []string) error {
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	var problems []string
	check := func(what string, ok bool, detail ...any) {
		if !ok {
			problems = append(problems, what+": "+fmt.Sprint(detail...))
		}
	}
	is := func(what string, err, want error) { check(what, errors.Is(err, want), err, " is not ", want) }
	no := func(what string, err error) { check(what, err == nil, err) }

	no("write", os.WriteFile("a", []byte("hello"), 0o644))
	data, err := os.ReadFile("a")
	check("read", string(data) == "hello" && err == nil, string(data), err)
	_, err = os.ReadFile("none")
	is("read what is not there", err, fs.ErrNotExist)
	_, err = os.OpenFile("a", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	is("create exclusively", err, fs.ErrExist)
	_, err = os.ReadFile("a/b")
	is("a file as a directory", err, syscall.ENOTDIR)
	_, err = os.ReadDir("a")
	is("list a file", err, syscall.ENOTDIR)

	f, err := os.OpenFile("a", os.O_RDWR, 0)
	no("open", err)
	n, err := f.WriteAt([]byte("XY"), 1)
	check("pwrite", n == 2 && err == nil, n, err)
	b := make([]byte, 3)
	n, err = f.ReadAt(b, 0)
	check("pread", n == 3 && err == nil && string(b) == "hXY", string(b), err)
	at, err := f.Seek(-2, io.SeekEnd)
	check("seek", at == 3 && err == nil, at, err)
	n, err = f.Read(b)
	check("read on", string(b[:n]) == "lo" && err == nil, string(b[:n]), err)
	_, err = f.Read(b)
	is("read at the end", err, io.EOF)
	no("truncate", f.Truncate(2))
	no("sync", f.Sync())
	info, err := f.Stat()
	check("stat", err == nil && info.Size() == 2 && info.Mode().IsRegular(), info, err)
	no("close", f.Close())
	check("close again", f.Close() != nil)

	f, err = os.OpenFile("a", os.O_WRONLY|os.O_APPEND, 0)
	no("open to append", err)
	_, err = f.Write([]byte("+1"))
	no("append", err)
	_, err = f.Seek(0, io.SeekStart)
	no("seek in append", err)
	_, err = f.Write([]byte("+2"))
	no("append again", err)
	_, err = f.Read(b)
	check("read what is open for writing", err != nil)
	no("close", f.Close())
	data, _ = os.ReadFile("a")
	check("appended", string(data) == "hX+1+2", string(data))

	no("mkdir", os.Mkdir("d", 0o755))
	is("mkdir again", os.Mkdir("d", 0o755), fs.ErrExist)
	no("mkdir all", os.MkdirAll("d/e/f", 0o755))
	no("write below", os.WriteFile("d/e/f/g", nil, 0o644))
	is("rmdir what is not empty", os.Remove("d"), syscall.ENOTEMPTY)
	is("write over a directory", os.WriteFile("d", nil, 0o644), syscall.EISDIR)
	is("unlink a directory", syscall.Unlink("d"), syscall.EISDIR)
	is("rmdir a file", syscall.Rmdir("a"), syscall.ENOTDIR)
	no("rename", os.Rename("d/e/f/g", "d/h"))
	no("rename a directory", os.Rename("d/e", "d/i"))
	is("rename over a directory", syscall.Rename("a", "d"), syscall.EISDIR)
	is("rename what is not there", os.Rename("none", "d/x"), fs.ErrNotExist)
	entries, err := os.ReadDir("d")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name()+":"+fmt.Sprint(e.IsDir()))
	}
	check("list", strings.Join(names, " ") == "h:false i:true" && err == nil, names, err)

	no("symlink", os.Symlink("../a", "d/link"))
	target, err := os.Readlink("d/link")
	check("readlink", target == "../a" && err == nil, target, err)
	data, err = os.ReadFile("d/link")
	check("read through a link", string(data) == "hX+1+2" && err == nil, string(data), err)
	info, err = os.Lstat("d/link")
	check("lstat", err == nil && info.Mode()&fs.ModeSymlink != 0, info, err)
	info, err = os.Stat("d/link")
	check("stat through a link", err == nil && info.Mode().IsRegular(), info, err)
	is("readlink of a file", second(os.Readlink("a")), syscall.EINVAL)
	no("unlink a link", os.Remove("d/link"))
	no("link", os.Link("a", "a2"))
	one, _ := os.Stat("a")
	two, _ := os.Stat("a2")
	check("same file", os.SameFile(one, two))
	no("unlink", os.Remove("a2"))

	when := time.Unix(1500000000, 0)
	no("utimes", os.Chtimes("a", when, when))
	if len(args) > 1 { // where times are shown
		info, err = os.Stat("a")
		check("times", err == nil && info.ModTime().Equal(when), info.ModTime(), err)
	}
	no("remove all", os.RemoveAll("d"))
	_, err = os.Stat("d")
	is("gone", err, fs.ErrNotExist)
	count := 300
	for i := range count {
		no("many", os.WriteFile(fmt.Sprintf("file-%03d", (i*7)%count), nil, 0o644))
	}
	entries, err = os.ReadDir(".")
	check("list many", err == nil && len(entries) == count+1 && entries[count].Name() == "file-299", len(entries), err)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	fmt.Println("fine")
	return nil
}

func second[T any](_ T, err error) error { return err }

// escape tries to leave the directory in every way, and says what came of it.
func escape(args []string) error {
	dir, secret := args[0], args[1]
	attempts := map[string]func() error{
		"up":            func() error { return second(os.ReadFile(dir + "/../" + secret)) },
		"up and up":     func() error { return second(os.ReadFile(dir + "/a/../../../../../../" + secret)) },
		"absolute":      func() error { return second(os.ReadFile("/" + secret)) },
		"link":          func() error { return second(os.ReadFile(dir + "/leak")) },
		"link in dir":   func() error { return second(os.ReadFile(dir + "/out/" + secret)) },
		"write by link": func() error { return os.WriteFile(dir+"/leak", []byte("overwritten"), 0o644) },
		"write by dir":  func() error { return os.WriteFile(dir+"/out/new", []byte("made"), 0o644) },
		"own link": func() error {
			if err := os.Symlink("../"+secret, dir+"/mine"); err != nil {
				return err
			}
			return second(os.ReadFile(dir + "/mine"))
		},
		"own absolute": func() error { return os.Symlink("/etc/passwd", dir+"/passwd") },
		"rename out":   func() error { return os.Rename(dir+"/a", dir+"/../stolen") },
		"rename by":    func() error { return os.Rename(dir+"/a", dir+"/out/stolen") },
		"hard link":    func() error { return os.Link(dir+"/out/"+secret, dir+"/hard") },
		"mkdir":        func() error { return os.Mkdir(dir+"/out/dir", 0o755) },
		"unlink":       func() error { return os.Remove(dir + "/out/" + secret) },
		"times":        func() error { return os.Chtimes(dir+"/leak", time.Unix(1, 0), time.Unix(1, 0)) },
		"list":         func() error { return second(os.ReadDir(dir + "/out")) },
		"stat":         func() error { return second(os.Stat(dir + "/out/" + secret)) },
	}
	for name, try := range attempts {
		if err := try(); err == nil {
			fmt.Println("escaped:", name)
		}
	}
	return nil
}
