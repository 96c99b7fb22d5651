package remote

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A far end that lists no workspace tool lists what it has beside them.
func TestOffered(t *testing.T) {
	list := func(names ...string) (all []tool.Description) {
		for _, name := range names {
			all = append(all, tool.Description{Name: name})
		}
		return all
	}
	workspace := list("read_file", "process")
	for _, test := range []struct{ listed, want []string }{
		{nil, []string{"read_file", "process"}},
		{[]string{"own"}, []string{"read_file", "process", "own"}},
		{[]string{"read_file", "own"}, []string{"read_file", "own"}},
	} {
		var got []string
		for _, d := range offered(list(test.listed...), workspace) {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("listed %q: it has %q, want %q", test.listed, got, test.want)
		}
	}
}
