package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
)

// owner is the process that made something, so that it can be proven dead.
type owner struct {
	// Host names the machine, and where it matters the process namespace.
	Host string
	PID  int
	// Start tells the process from a later one with its pid; "" when the
	// operating system does not tell.
	Start string
}

// self is this process.
func self() owner {
	o := owner{Host: hostID(), PID: os.Getpid()}
	o.Start, _ = processStart(o.PID)
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

// dead reports whether the process is proven to have ended: it was on this
// machine, and its pid is free or somebody else's.
func (o owner) dead() bool {
	if o.PID <= 0 || o.Host != hostID() {
		return false
	}
	start, running := processStart(o.PID)
	if !running {
		return true
	}
	return o.Start != "" && start != "" && o.Start != start
}

// labels are the owner as labels.
func (o owner) labels() map[string]string {
	return map[string]string{
		labelOwnerHost:  o.Host,
		labelOwnerPID:   strconv.Itoa(o.PID),
		labelOwnerStart: o.Start,
	}
}

// ownerOf reads the labels back; without them the zero owner, which is never dead.
func ownerOf(labels map[string]string) owner {
	pid, err := strconv.Atoi(labels[labelOwnerPID])
	if err != nil {
		return owner{}
	}
	return owner{Host: labels[labelOwnerHost], PID: pid, Start: labels[labelOwnerStart]}
}
