package artifacts

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// publisherEnv makes the test binary a second service process: it publishes
// and deletes in the store that the variable names.
const publisherEnv = "CAISSON_TEST_PUBLISHER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(publisherEnv); dir != "" {
		os.Exit(runPublisher(dir))
	}
	goleak.VerifyTestMain(m)
}

func publisher(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), publisherEnv+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}
