package docker

import (
	"strconv"

	"github.com/caisson-dev/caisson/backends/remote"
)

// owner is the process that made something, which its labels name.
type owner remote.Owner

// self is this process.
func self() owner { return owner(remote.Self()) }

// dead reports whether the process is proven to have ended.
func (o owner) dead() bool { return remote.Owner(o).Dead() }

// thisBoot reports whether the process is known to be of this machine's present boot.
func (o owner) thisBoot() bool { return remote.Owner(o).ThisBoot() }

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
