package process

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// here describes the running system.
func here() identity {
	var id identity
	if tv, err := unix.SysctlTimeval("kern.boottime"); err == nil {
		id.Boot = strconv.FormatInt(tv.Sec, 10)
	}
	return id
}

// startTime is the start time of pid in microseconds since 1970.
func startTime(pid int) (uint64, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return 0, false
	}
	return uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec), true
}

// scan lists all processes. Sessions are not told here.
func scan() ([]procInfo, error) {
	ks, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	const zombie = 5 // SZOMB of sys/proc.h
	all := make([]procInfo, 0, len(ks))
	for _, k := range ks {
		all = append(all, procInfo{
			pid: int(k.Proc.P_pid), parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid),
			zombie: k.Proc.P_stat == zombie,
			start:  uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		})
	}
	return all, nil
}

// worksIn is never known here either.
func worksIn(int, string) bool { return false }

// unprivileged is never the case: commands are not confined here.
func unprivileged(int) bool { return false }

// marked is never known here: the system tells nobody a process's environment.
func marked(int, string) bool { return false }
