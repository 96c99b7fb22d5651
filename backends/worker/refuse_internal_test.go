package worker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// Why it is refused is told to whoever cannot be a command, and to nobody else.
func TestRefusalsTellWhy(t *testing.T) {
	for why, told := range map[error]bool{
		errors.New("process 7 belongs to user 8"):                    true,
		fmt.Errorf("%w: process 7 is confined", endpoint.ErrCommand): false,
	} {
		e, ok := errors.AsType[*tool.Error](errRefused(why))
		if !ok || e.Kind != tool.Denied || e.Retryable || !strings.Contains(e.Hint, "worker.log") {
			t.Errorf("%+v", e)
		}
		if all := e.Error() + e.Hint; strings.Contains(all, "process 7") != told {
			t.Errorf("%v is told as %s", why, all)
		}
	}
}
