package docker

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
)

// unreachable is the error of a daemon that cannot be spoken to: it names the
// endpoint and who chose it, and says what to do.
func (e *engine) unreachable(err error) *tool.Error {
	failure := tool.Errorf(tool.BackendUnavailable, "cannot reach the docker daemon at %s: %s", e.endpoint, oneLine(err))
	failure.Err, failure.Retryable = err, true
	return failure.WithHint("%s", e.remedy(err))
}

// strange is the error of what answers at the endpoint, but not as a daemon does.
func (e *engine) strange(err error) *tool.Error {
	failure := tool.Errorf(tool.BackendUnavailable, "what listens at %s does not answer as a docker daemon does: %s", e.endpoint, oneLine(err))
	failure.Err = err
	return failure.WithHint("%s", e.remedy(err))
}

// remedy is what to do when the daemon cannot be spoken to.
func (e *engine) remedy(err error) string {
	scheme := e.endpoint.scheme()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "add your user to the group docker (and log in anew), or use a rootless daemon"
	case errors.Is(err, fs.ErrNotExist):
		return "no daemon listens there: start docker, or name another endpoint by docker_host in the profile or DOCKER_HOST"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the daemon is not running there: start docker, or name another endpoint by docker_host in the profile or DOCKER_HOST"
	case scheme == "ssh":
		return "try: ssh " + strings.TrimPrefix(e.endpoint.Host, "ssh://") + " docker version"
	case scheme == "tcp" && e.endpoint.TLS == nil:
		return "is it the right host and port, and does it want TLS (DOCKER_CERT_PATH)?"
	case scheme == "tcp":
		return "is it the right host and port, and do the certificates fit?"
	default:
		return "try: docker --host " + e.endpoint.Host + " version"
	}
}

// oneLine is what an error says, on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// answered is the error of a daemon that refused something.
func (e *engine) answered(doing string, err error) *tool.Error {
	message := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	failure := tool.Errorf(tool.BackendUnavailable, "%s on the docker daemon at %s: %s", doing, e.endpoint.Host, message)
	failure.Err = err
	return failure
}
