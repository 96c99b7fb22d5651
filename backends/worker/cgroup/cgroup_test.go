package cgroup

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	const (
		cpu  = "35 25 0:30 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
		both = "37 25 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		v2   = "30 24 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate\n"
		part = "90 24 0:26 /user.slice/a.scope /mnt/part rw - cgroup2 cgroup rw\n"
	)
	v1 := func(root string) string {
		return cpu + both + "36 25 0:31 " + root + " /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids\n"
	}
	const v1Top, top = "/sys/fs/cgroup/pids", "/sys/fs/cgroup"
	for name, test := range map[string]struct {
		groups, mounts string
		want           Group
		levels         []string
	}{
		"version 1": {
			"5:cpu:/x\n4:pids:/user.slice/a.scope\n0::/\n", v1("/"), Group{v1Top + "/user.slice/a.scope", v1Top, true},
			[]string{v1Top + "/user.slice/a.scope", v1Top + "/user.slice", v1Top},
		},
		"version 1 in a container":   {"4:cpuset,pids:/docker/abc\n0::/\n", v1("/docker/abc"), Group{v1Top, v1Top, true}, []string{v1Top}},
		"version 1, another's mount": {"4:pids:/docker/abcdef\n", v1("/docker/abc"), Group{}, nil},
		"version 2 in a container":   {"0::/\n", v2, Group{top, top, false}, []string{top}},
		"version 2 in a group":       {"0::/user.slice/a.scope\n", v2, Group{top + "/user.slice/a.scope", top, false}, []string{top + "/user.slice/a.scope", top + "/user.slice", top}},
		"the mount that shows more":  {"0::/user.slice/a.scope\n", v2 + part, Group{top + "/user.slice/a.scope", top, false}, []string{top + "/user.slice/a.scope", top + "/user.slice", top}},
		"whichever comes first":      {"0::/user.slice/a.scope\n", part + v2, Group{top + "/user.slice/a.scope", top, false}, []string{top + "/user.slice/a.scope", top + "/user.slice", top}},
		"one above the other":        {"0::/\n", v2 + strings.Replace(v2, top, "/mnt/all", 1), Group{"/mnt/all", "/mnt/all", false}, []string{"/mnt/all"}},
		"version 2 outside":          {"0::/../other\n", v2, Group{}, nil},
		"this one in version 1 only": {"4:pids:/a\n0::/b\n", v2, Group{}, nil},
		"the first version lacks it": {"4:cpu:/a\n0::/b\n", v1("/"), Group{top + "/unified/b", top + "/unified", false}, []string{top + "/unified/b", top + "/unified"}},
		"no mount":                   {"0::/\n", cpu, Group{}, nil},
		"damaged":                    {"0::/\n", "1 2\n - \n", Group{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find("pids", test.groups, test.mounts)
			if got != test.want || (err == nil) != (test.levels != nil) || errors.Is(err, ErrNone) {
				t.Fatalf("%+v, %v, want %+v", got, err, test.want)
			}
			if err == nil && !slices.Equal(got.Levels(), test.levels) {
				t.Errorf("levels %q, want %q", got.Levels(), test.levels)
			}
		})
	}
	for _, groups := range []string{"", "5:cpu:/x\n1:name=systemd:/\n", "0\n::\n"[:2]} {
		if _, err := Find("pids", groups, v2); !errors.Is(err, ErrNone) {
			t.Errorf("in %q: %v", groups, err)
		}
	}
}
