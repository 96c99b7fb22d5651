package tool

import (
	"errors"
	"testing"
)

// A glob that cannot match is told at once: nothing that comes back looks like a job
// that left nothing.
func TestGlobsOfJobs(t *testing.T) {
	for glob, fine := range map[string]bool{
		"**": true, "*.csv": true, "out/**": true, "./a": true, ".hidden/*": true, "..a/b": true, "a..": true, "{a,b}/c": true, "[.]x": true,
		"": false, ".": false, "./": false, "/": false, "/etc/*": false, "out/": false, "a//b": false, "a/./b": false,
		"..": false, "../**": false, "./../a": false, "a/../b": false, "{a,../b}": false, "{..,a}/b": false,
	} {
		err := (&JobRequest{Argv: []string{"true"}, Collect: []string{"*", glob}}).Check()
		e, ok := errors.AsType[*Error](err)
		if fine && err != nil || !fine && (!ok || e.Kind != InvalidParams || e.Path != "collect" || e.Hint == "") {
			t.Errorf("%q: %v", glob, err)
		}
	}
}
