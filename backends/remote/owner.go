package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// Owner is a process of a service that made something elsewhere, so that it can
// be proven dead. It is comparable.
type Owner struct {
	// Host names the machine, and where it matters the process namespace.
	Host string
	PID  int
	// Start tells the process from a later one with its pid, as "boot:when"; ""
	// when the operating system does not tell.
	Start string
}

// Self is this process.
func Self() Owner { return OwnerOf(os.Getpid()) }

// OwnerOf is a process of this machine.
func OwnerOf(pid int) Owner {
	o := Owner{Host: hostID(), PID: pid}
	o.Start, _ = processStart(pid)
	return o
}

// hostID names this machine without telling more about it than its host name.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	sum := sha256.Sum256([]byte(machine()))
	return name + "-" + hex.EncodeToString(sum[:6])
}

// Dead reports whether the process is proven to have ended: it was on this
// machine, and its pid is free or somebody else's. The zero owner never is.
func (o Owner) Dead() bool {
	if o.PID <= 0 || o.Host != hostID() {
		return false
	}
	start, running := processStart(o.PID)
	if !running {
		return true
	}
	return o.Start != "" && start != "" && o.Start != start
}

// ThisBoot reports whether the process is of this machine since it was booted, as
// far as is known: a copy of a machine has its name, but was booted by itself.
func (o Owner) ThisBoot() bool {
	mine, _ := processStart(os.Getpid())
	boot, _, _ := strings.Cut(mine, ":")
	return boot != "" && o.Host == hostID() && strings.HasPrefix(o.Start, boot+":")
}
