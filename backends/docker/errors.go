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
	failure := tool.Errorf(tool.BackendUnavailable, "cannot reach the docker daemon at %s: %w", e.endpoint, err)
	failure.Retryable = true
	scheme := e.endpoint.scheme()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return failure.WithHint("add your user to the group docker (and log in anew), or use a rootless daemon")
	case errors.Is(err, fs.ErrNotExist):
		return failure.WithHint("no daemon listens there: start docker, or name another endpoint by docker_host in the profile or DOCKER_HOST")
	case errors.Is(err, syscall.ECONNREFUSED):
		return failure.WithHint("the daemon is not running there: start docker, or name another endpoint by docker_host in the profile or DOCKER_HOST")
	case scheme == "ssh":
		return failure.WithHint("try: ssh %s docker version", strings.TrimPrefix(e.endpoint.Host, "ssh://"))
	case scheme == "tcp" && e.endpoint.TLS == nil:
		return failure.WithHint("is it the right host and port, and does it want TLS (DOCKER_CERT_PATH)?")
	case scheme == "tcp":
		return failure.WithHint("is it the right host and port, and do the certificates fit?")
	default:
		return failure.WithHint("try: docker --host %s version", e.endpoint.Host)
	}
}

// strange is the error of what answers at the endpoint, but not as a daemon does.
func (e *engine) strange(err error) *tool.Error {
	return tool.Errorf(tool.BackendUnavailable, "what listens at %s does not answer as a docker daemon does: %w", e.endpoint, err).
		WithHint("is a docker daemon there, and is it well? Try: docker --host %s version", e.endpoint.Host)
}

// answered is the error of a daemon that refused something.
func (e *engine) answered(doing string, err error) *tool.Error {
	message := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	failure := tool.Errorf(tool.BackendUnavailable, "%s on the docker daemon at %s: %s", doing, e.endpoint.Host, message)
	failure.Err = err
	return failure
}
