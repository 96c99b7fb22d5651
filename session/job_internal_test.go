package session

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/backends"
)

// No two files of a job are artifacts of one name: with one content they would be one.
func TestArtifactNames(t *testing.T) {
	for _, tt := range []struct{ paths, names []string }{
		{[]string{"a/x", "b", "c/y"}, []string{"x", "b", "y"}},
		{[]string{"a/x", "b/x", "x"}, []string{"a_x", "b_x", "x"}},
		{[]string{"a/x", "a_x", "b/x"}, []string{"_a_x", "a_x", "b_x"}},
		{[]string{"_a_x", "a/x", "a_x", "b/x"}, []string{"_a_x", "__a_x", "a_x", "b_x"}},
		{[]string{"a/b_c", "a_b/c", "b_c", "c"}, []string{"a_b_c", "_a_b_c", "b_c", "c"}},
		{[]string{"a/x", "a_x", "b/a_x", "b/x"}, []string{"_a_x", "a_x", "b_a_x", "b_x"}},
		{[]string{"bytes:%FF", "bytes:a/%FF", "bytes:a_%FF"}, []string{"bytes:%FF", "bytes:_a_%FF", "bytes:a_%FF"}},
	} {
		files := make([]backends.JobFile, len(tt.paths))
		for i, p := range tt.paths {
			files[i].Path = p
		}
		if got := artifactNames(files); !slices.Equal(got, tt.names) {
			t.Errorf("%q: %q and not %q", tt.paths, got, tt.names)
		}
	}
}
