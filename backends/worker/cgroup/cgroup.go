// Package cgroup finds the control groups of Linux that this program is in. It reads
// where they are, and nothing in them: what the files there mean is for others to know.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// A Group is where a controller has the files of this program's group.
type Group struct {
	// Dir is the directory of the group itself. In version 2 it may lack the files of
	// a controller that is on only further up.
	Dir string
	// Top is Dir or above it: the uppermost group that can be seen from here. There
	// may be more above it.
	Top string
	// First says that the controller is one of version 1.
	First bool
}

// ErrNone says that nothing here is in a group of the controller.
var ErrNone = errors.New("no control group has this controller")

// Own is this program's group of a controller. The error is [ErrNone] where there is
// none, and another one where it cannot be seen.
func Own(controller string) (Group, error) {
	groups, err1 := os.ReadFile("/proc/self/cgroup")
	mounts, err2 := os.ReadFile("/proc/self/mountinfo")
	if err := errors.Join(err1, err2); err != nil {
		return Group{}, err
	}
	g, err := Find(controller, string(groups), string(mounts))
	if err == nil {
		// Each group has it, and a directory that something else is mounted over has not.
		_, err = os.Lstat(path.Join(g.Top, "cgroup.procs"))
	}
	return g, err
}

// Find is the group of who has these /proc/self/cgroup and /proc/self/mountinfo. The
// errors are those of [Own].
func Find(controller, groups, mounts string) (Group, error) {
	group, first, err := named(controller, groups)
	if err != nil {
		return Group{}, err
	}
	if !path.IsAbs(group) || strings.HasPrefix(group, "/..") {
		return Group{}, fmt.Errorf("the control group %s is outside of what can be seen", group)
	}
	found, upmost := Group{First: first}, 0
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		const rootField, placeField = 3, 4
		if !ok || len(mount) <= placeField || len(kind) < 3 {
			continue
		}
		if first {
			ok = kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), controller)
		} else {
			ok = kind[0] == "cgroup2"
		}
		root := strings.TrimSuffix(mount[rootField], "/")
		below, inside := strings.CutPrefix(group, root)
		if !ok || !inside || below != "" && below[0] != '/' {
			continue
		}
		// The one that shows the most; of two such ones the later, which may cover the other.
		if found.Top == "" || len(root) <= upmost {
			found.Top, upmost = path.Clean(mount[placeField]), len(root)
			found.Dir = path.Join(found.Top, below)
		}
	}
	if found.Top == "" {
		return Group{}, fmt.Errorf("the control group %s is not mounted", group)
	}
	return found, nil
}

// named is the name of a controller's group, and whether that is one of version 1: where
// the first version has a controller, the second does not.
func named(controller, groups string) (name string, first bool, err error) {
	err = ErrNone
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case slices.Contains(strings.Split(controllers, ","), controller):
			return at, true, nil
		case controllers == "":
			name, err = at, nil
		}
	}
	return name, false, err
}

// Levels are the directories of the group and of all above it that can be seen, whose
// limits hold for it too, from Dir to Top.
func (g Group) Levels() []string {
	levels := []string{g.Dir}
	for dir := g.Dir; dir != g.Top && dir != path.Dir(dir); {
		dir = path.Dir(dir)
		levels = append(levels, dir)
	}
	return levels
}
