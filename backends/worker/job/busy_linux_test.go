package job

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestProgramsAmongInputs: an input that is run is not held open for writing by
// what another job starts at that moment.
func TestProgramsAmongInputs(t *testing.T) {
	r := newRig(t, nil)
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan string, 1)
	var jobs sync.WaitGroup
	for range 8 {
		jobs.Go(func() {
			for range 25 {
				result, err := r.runner.Run(t.Context(), tool.JobRequest{Argv: []string{"./program"}, Inputs: []tool.JobInput{{Path: "program", Data: program}}})
				if err != nil || result.ExitCode != 0 {
					select {
					case failed <- fmt.Sprintf("%+v, %v", result, err):
					default:
					}
					return
				}
			}
		})
	}
	jobs.Wait()
	select {
	case why := <-failed:
		t.Error(why)
	default:
	}
}
