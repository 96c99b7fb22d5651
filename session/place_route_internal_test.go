package session

import (
	"testing"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

func TestWeight(t *testing.T) {
	for glob, want := range map[string]int{
		"*":                     0,
		"*.*":                   1,
		"shell.*":               6,
		"shell.bash":            11,
		"shell.bas?":            9,
		"shell.[ab]ash":         9,
		"*.read_file":           10,
		"file.read_*":           10,
		"{file,search}.*":       5,
		"{file,shell}.bash":     9,
		"{a,{bcd,ef}}x":         2,
		"{bcd,{ef,ghi}}x":       3,
		`shell.\*`:              7,
		"file.{read,write}_*":   10,
		"plugins.*":             8,
		"{file,}.x":             2,
		"file.read_file{,_all}": 14,
	} {
		if got := weight(glob); got != want {
			t.Errorf("weight(%q) = %d, want %d", glob, got, want)
		}
	}
}

// The most specific override wins, of equal ones the first.
func TestSpecificity(t *testing.T) {
	places := []store.Place{
		{Profile: profile.Profile{Name: "main"}}, {Profile: profile.Profile{Name: "a"}}, {Profile: profile.Profile{Name: "b"}},
	}
	read, write := toolName{tool.GroupFile, "read_file"}, toolName{tool.GroupFile, "write_file"}
	bash, git := toolName{tool.GroupShell, "bash"}, toolName{tool.GroupGit, "git"}
	present := toolName{tool.GroupArtifact, "present_artifact"}
	process := toolName{tool.GroupProcess, "process"}
	start, job := toolName{tool.GroupProcess, processStart}, toolName{tool.GroupShell, shellJob}
	plugin, slashed := toolName{tool.GroupPlugins, "lint"}, toolName{tool.GroupPlugins, "my/lint"}
	type o struct{ pattern, profile string }
	tests := []struct {
		name      string
		overrides []o
		tool      toolName
		want      string
	}{
		{"none", nil, read, "main"},
		{"another group", []o{{"shell.*", "a"}}, read, "main"},
		{"a group", []o{{"shell.*", "a"}}, bash, "a"},
		{"all", []o{{"*", "a"}}, plugin, "a"},
		{"all, with a slash", []o{{"*", "a"}}, slashed, "a"},
		{"a group, with a slash", []o{{"plugins.*", "a"}}, slashed, "a"},
		{"a tool before its group", []o{{"file.*", "a"}, {"file.read_file", "b"}}, read, "b"},
		{"a group after its tool", []o{{"file.read_file", "b"}, {"file.*", "a"}}, read, "b"},
		{"its group for another", []o{{"file.read_file", "b"}, {"file.*", "a"}}, write, "a"},
		{"a group before all", []o{{"*", "a"}, {"file.*", "b"}}, read, "b"},
		{"the first of equals", []o{{"file.read_*", "a"}, {"*.read_file", "b"}}, read, "a"},
		{"the first of equals, the other way round", []o{{"*.read_file", "b"}, {"file.read_*", "a"}}, read, "b"},
		{"a name before a glob that spells out as much", []o{{"file.read_file*", "a"}, {"file.read_file", "b"}}, read, "b"},
		{"the main one again", []o{{"*", "a"}, {"file.*", "main"}}, write, "main"},
		{"alternatives", []o{{"{file,shell}.*", "a"}, {"git.*", "b"}}, git, "b"},
		{"alternatives of groups", []o{{"{file,shell}.*", "a"}, {"git.*", "b"}}, bash, "a"},
		{"processes are where the shell is", []o{{"shell.*", "a"}}, process, "a"},
		{"whatever else is said", []o{{"shell.*", "a"}, {"process.*", "b"}}, process, "a"},
		{"and started there", []o{{"shell.bash", "a"}, {"shell.*", "b"}}, start, "a"},
		{"jobs too", []o{{"shell.bash", "a"}, {"shell.*", "b"}}, job, "a"},
		{"artifacts are where the files are", []o{{"file.*", "a"}}, present, "a"},
		{"even when all goes elsewhere", []o{{"*", "b"}, {"file.*", "a"}}, present, "a"},
		{"unless they are named", []o{{"artifact.*", "b"}, {"file.*", "a"}}, present, "b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var overrides []store.Override
			for _, o := range test.overrides {
				overrides = append(overrides, store.Override{Pattern: o.pattern, Profile: o.profile})
			}
			r, err := newRoutes(overrides, places)
			if err != nil {
				t.Fatal(err)
			}
			if got := places[r.find(test.tool)].Profile.Name; got != test.want {
				t.Errorf("%s goes to %s, want %s", test.tool, got, test.want)
			}
		})
	}
	if _, err := newRoutes([]store.Override{{Pattern: "*", Profile: "nobody"}}, places); tool.KindOf(err) != tool.Internal {
		t.Errorf("an override to no place: %v", err)
	}
}
