package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// here describes the running system.
func here() identity {
	var id identity
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		id.Boot = strings.TrimSpace(string(b))
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		id.Namespace = ns
	}
	return id
}

// startTime is the start time of pid in clock ticks since boot.
func startTime(pid int) (uint64, bool) {
	p, err := readProc(strconv.Itoa(pid))
	return p.start, err == nil
}

// scan lists all processes that /proc shows: mounted with hidepid it hides those of
// others, also where it names them. It fails when /proc is not there.
func scan() ([]procInfo, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []procInfo
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		p, err := readProc(name)
		switch {
		case err == nil:
			all = append(all, p)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrPermission):
			return nil, err
		}
	}
	return all, nil
}

// readProc reads /proc/<name>/stat: "pid (name) state ppid pgrp session ...",
// where the name may hold anything, and the number of threads is the 20th field, the
// start time the 22nd. A process whose first thread has ended is a zombie only when no
// other one lives.
func readProc(name string) (procInfo, error) {
	var room [1024]byte // what is looked for stands in its first 600 bytes, with the longest name and numbers
	b, err := readOnce("/proc/"+name+"/stat", room[:])
	if err != nil {
		return procInfo{}, err
	}
	_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	f := bytes.Fields(rest)
	if len(f) < 20 {
		return procInfo{}, fs.ErrNotExist // it ended while it was looked at
	}
	num := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n } // the kernel writes numbers
	p := procInfo{
		parent: num(1), group: num(2), session: num(3),
		zombie: f[0][0] == 'Z' && num(17) <= 1 || f[0][0] == 'X',
	}
	if p.pid, err = strconv.Atoi(name); err != nil {
		return procInfo{}, err
	}
	p.start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err
}

// readOnce reads a file of /proc that fits into room, without the calls by which a
// file becomes one that can be waited for: it is part of every start.
func readOnce(path string, room []byte) (_ []byte, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, room)
	return room[:max(0, n)], errors.Join(err, unix.Close(fd))
}

// worksIn reports whether the process's working directory is dir, or below it. That
// of a process that may not be looked into is not.
func worksIn(pid int, dir string) bool {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/"))
}

// unprivileged reports whether the process can gain no privileges by what it executes,
// as confined commands cannot, nor what these start. Everybody may know, where /proc
// does not hide it.
func unprivileged(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && bytes.Contains(b, []byte("\nNoNewPrivs:\t1\n"))
}

// marked reports whether the process carries a mark that begins with value. A
// process that may not be looked into does not.
func marked(pid int, value string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	want := []byte(mark + "=" + value)
	return bytes.HasPrefix(b, want) || bytes.Contains(b, append([]byte{0}, want...))
}
