package backends

import (
	"fmt"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestHealth(t *testing.T) {
	var h Health
	if h.OK {
		t.Error("nothing was tried, and it is good")
	}
	bad := fmt.Errorf("tried: %w", tool.Errorf(tool.Internal, "broken").WithHint("mend it"))
	for _, step := range []struct {
		err  error
		good bool
		want Check
	}{
		{nil, true, Check{Name: "it", OK: true, Detail: "works"}},
		{bad, false, Check{Name: "it", Detail: "tried: broken", Hint: "mend it"}},
		{nil, false, Check{Name: "it", OK: true, Detail: "works"}},
	} {
		c := NewCheck("it", step.err, "works")
		if c != step.want {
			t.Errorf("%+v, want %+v", c, step.want)
		}
		if got := h.Add(c); got != (step.err == nil) || h.OK != step.good || !slices.Contains(h.Checks, c) {
			t.Errorf("added %v, %+v", got, h)
		}
	}
	if len(h.Checks) != 3 {
		t.Errorf("%+v", h)
	}
}
