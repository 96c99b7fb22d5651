package docker

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/caisson-dev/caisson/backends/remote"
)

// The files engine*.go alone import the engine's client library. They turn our
// types into the library's and its errors into ours, and decide nothing.

// connectionError is a daemon that could not be spoken to at all.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

// What an engine's answer can mean beside success.
var (
	errNotFound = errors.New("not found")
	errConflict = errors.New("conflict")
)

// engine is a connection to one daemon.
type engine struct {
	endpoint endpoint
	api      *client.Client
	dial     dialFunc
	gate     *gate
	// describing is describeTimeout, shorter in tests.
	describing time.Duration

	mu    sync.Mutex
	info  daemonInfo
	asked time.Time // when info was
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newEngine prepares a connection; nothing is dialled yet.
func newEngine(e endpoint) (*engine, error) {
	host := e.Host
	if e.scheme() == "ssh" {
		// Any address will do: the dialler knows where to go.
		host = "http://docker.invalid"
	}
	transport := &http.Transport{MaxIdleConns: 6, IdleConnTimeout: idleConnection}
	requests := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
	// The library sets the transport up for sockets and named pipes, and wraps it.
	api, err := client.NewClientWithOpts(
		client.WithHTTPClient(requests),
		client.WithHost(host),
		client.WithAPIVersionNegotiation(),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	dial, err := e.dialer(transport.DialContext)
	if err != nil {
		return nil, err
	}
	if e.scheme() == "ssh" {
		transport.Proxy = nil
	}
	// Dialled here and not by the transport's own means: the library hijacks
	// connections past the transport, and only a plain DialContext serves both.
	connection := &engine{endpoint: e, api: api, dial: dial, describing: describeTimeout}
	connection.gate = &gate{inner: requests.Transport, idle: transport.CloseIdleConnections}
	requests.Transport = connection.gate
	transport.DialContext = connection.connect
	return connection, nil
}

// dialer bounds the time of inner, or replaces it for ssh, and adds TLS.
func (e endpoint) dialer(inner dialFunc) (dialFunc, error) {
	if e.scheme() == "ssh" {
		args, err := sshArgs(e.Host)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialCommand(ctx, "ssh", args...)
		}, nil
	}
	var config *tls.Config
	if e.TLS != nil {
		var err error
		if config, err = e.TLS.config(e.Host); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn, err := inner(ctx, network, address)
		if err != nil || config == nil {
			return conn, err
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return secure, nil
	}, nil
}

// heldConn is the context key under which a caller that hijacks a connection
// learns of it, so that it can end a request that the library cannot cancel.
type heldConn struct{}

// connect dials for the library.
func (e *engine) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if e.gate.closed.Load() {
		return nil, net.ErrClosed
	}
	conn, err := e.reach(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if e.gate.closed.Load() { // meanwhile: nobody is left who would close it
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	if hold, ok := ctx.Value(heldConn{}).(func(net.Conn)); ok {
		hold(conn)
	}
	return conn, nil
}

// close ends idle connections, and no new ones are made. A request that is
// under way takes its connection along when it ends.
func (e *engine) close() error {
	e.gate.close()
	return e.api.Close()
}

// reach dials. That nobody answers in time is not the end of ctx, and is told
// from it.
func (e *engine) reach(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := e.dial(ctx, network, address)
	if err != nil && ctx.Err() == nil {
		err = connectionError{err}
	}
	return conn, err
}

// hello makes sure that the daemon answers and says what it is.
func (e *engine) hello(ctx context.Context) (daemonInfo, error) {
	limit := answerTimeout
	if e.endpoint.scheme() == "ssh" {
		limit = sshTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	err := e.ask(bounded)
	var d daemonInfo
	if err == nil {
		// It is there, so that all there is left to wait for is a busy machine.
		cancel()
		limit = e.describing
		bounded, cancel = context.WithTimeout(ctx, limit)
		d, err = e.describe(bounded)
	}
	defer cancel()
	switch {
	case err == nil:
		return d, nil
	case ctx.Err() != nil:
		err = fmt.Errorf("asking the docker daemon what it is: %w", ctx.Err()) // not its fault
	case bounded.Err() != nil:
		err = e.unreachable(fmt.Errorf("it did not answer within %s", limit))
	case isConnection(err):
		err = e.unreachable(err)
	default:
		err = e.strange(err)
	}
	return daemonInfo{}, err
}

// ask makes sure that the daemon answers within the time of ctx, with the library's
// errors.
func (e *engine) ask(ctx context.Context) error {
	if e.endpoint.scheme() != "ssh" {
		if err := e.probe(ctx); err != nil {
			return err
		}
	}
	ping, err := e.api.Ping(ctx)
	if err != nil {
		return err
	}
	e.api.NegotiateAPIVersionPing(ping)
	return nil
}

// describe is what the daemon says about itself, which changes with a restart
// only and takes it longer than all else that a container needs before its start.
func (e *engine) describe(ctx context.Context) (daemonInfo, error) {
	e.mu.Lock()
	known, fresh := e.info, !e.asked.IsZero() && time.Since(e.asked) < infoAge
	e.mu.Unlock()
	if fresh {
		return known, nil
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return daemonInfo{}, err
	}
	d := daemonInfo{
		ID:       info.ID,
		Version:  info.ServerVersion,
		API:      e.api.ClientVersion(),
		Platform: platform{OS: info.OSType, Arch: remote.GoArch(info.Architecture)},
		System:   info.OperatingSystem,
	}
	d.Limits.Memory, d.Limits.CPU, d.Limits.Pids = info.MemoryLimit, info.CPUCfsQuota, info.PidsLimit
	for _, option := range info.SecurityOptions {
		name, _, _ := strings.Cut(option, ",")
		d.Rootless = d.Rootless || name == "name=rootless"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info, e.asked = d, time.Now()
	return d, nil
}

// probe dials once, because the library hides why a connection failed.
func (e *engine) probe(ctx context.Context) error {
	scheme, address, _ := strings.Cut(e.endpoint.Host, "://")
	conn, err := e.reach(ctx, scheme, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// image looks for an image; want, unless zero, chooses among its platforms
// where the daemon can.
func (e *engine) image(ctx context.Context, ref string, want platform) (imageInfo, error) {
	var options []client.ImageInspectOption
	if want != (platform{}) && e.atLeast(1, 49) {
		options = append(options, client.ImageInspectWithPlatform(want.oci()))
	}
	found, err := e.api.ImageInspect(ctx, ref, options...)
	if err != nil {
		return imageInfo{}, e.failed("looking for the image "+ref, err)
	}
	i := imageInfo{ID: found.ID, Platform: platform{OS: found.Os, Arch: found.Architecture, Variant: found.Variant}}
	if found.Config != nil {
		i.User = found.Config.User
	}
	return i, nil
}

// atLeast reports whether the negotiated API version is major.minor or later.
func (e *engine) atLeast(major, minor int) bool {
	var have, dot int
	if _, err := fmt.Sscanf(e.api.ClientVersion(), "%d.%d", &have, &dot); err != nil {
		return false
	}
	return have > major || have == major && dot >= minor
}

func (p platform) oci() *ocispec.Platform {
	return &ocispec.Platform{OS: p.OS, Architecture: p.Arch, Variant: p.Variant}
}

// pull fetches an image, with no credentials.
func (e *engine) pull(ctx context.Context, ref, platform string, report func(pullMessage)) error {
	body, err := e.api.ImagePull(ctx, ref, image.PullOptions{Platform: platform})
	if err != nil {
		return e.failed("pulling "+ref, err)
	}
	defer body.Close()
	decoder := json.NewDecoder(body)
	for {
		var m pullMessage
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return e.failed("pulling "+ref, err)
		}
		if m.Error != "" {
			return e.answered("pulling "+ref, errors.New(m.Error))
		}
		report(m)
	}
}

// create makes a container and returns its id.
func (e *engine) create(ctx context.Context, s containerSpec) (string, error) {
	no := false
	stop := int(s.StopTimeout / time.Second)
	config := &container.Config{
		Image: s.Image, User: s.User, Entrypoint: s.Entrypoint, Cmd: s.Args, Labels: s.Labels,
		WorkingDir: "/", StopSignal: "SIGTERM", StopTimeout: &stop,
		// What an image wants to be watched by runs in no container of ours.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		OpenStdin:   s.Interactive, StdinOnce: s.Interactive, AttachStdin: s.Interactive,
	}
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode(s.Network), AutoRemove: s.AutoRemove, ReadonlyRootfs: s.ReadOnlyRoot,
		Tmpfs: s.Tmpfs, VolumesFrom: s.VolumesFrom, ShmSize: s.ShmSize, Runtime: s.Runtime, Init: &no,
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": logBytes, "max-file": "1"}},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		// As much swap as memory would double what the profile allows.
		Resources: container.Resources{NanoCPUs: s.NanoCPUs, Memory: s.Memory, MemorySwap: s.Memory},
	}
	if s.NoLog {
		host.LogConfig = container.LogConfig{Type: "none"}
	}
	if s.Pids > 0 {
		host.PidsLimit = &s.Pids
	}
	for _, m := range s.Mounts {
		o := mount.Mount{Type: mount.Type(m.Kind), Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
		if m.Kind == volumeMount {
			o.VolumeOptions = &mount.VolumeOptions{NoCopy: m.NoCopy, Labels: m.Labels}
		}
		host.Mounts = append(host.Mounts, o)
	}
	var p *ocispec.Platform
	if s.Platform != (platform{}) {
		p = s.Platform.oci()
	}
	made, err := e.api.ContainerCreate(ctx, config, host, &network.NetworkingConfig{}, p, s.Name)
	if err != nil {
		return "", e.failed("creating the container "+s.Name, err)
	}
	return made.ID, nil
}

func (e *engine) start(ctx context.Context, id string) error {
	return e.failed("starting the container", e.api.ContainerStart(ctx, id, container.StartOptions{}))
}

// remove kills and removes a container and its anonymous volumes.
func (e *engine) remove(ctx context.Context, id string) error {
	return e.failed("removing the container",
		e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true}))
}

// gone waits until a container that removes itself has done so.
func (e *engine) gone(ctx context.Context, id string) error {
	ctx, cancel := context.WithCancel(ctx) // ends the wait with the call
	defer cancel()
	ended, failed := e.api.ContainerWait(ctx, id, container.WaitConditionRemoved)
	var err error
	select {
	case <-ended:
	case err = <-failed:
	}
	if err = e.failed("waiting for the removal of the container", err); errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

// container describes one by its name or id.
func (e *engine) container(ctx context.Context, name string) (containerInfo, error) {
	found, err := e.api.ContainerInspect(ctx, name)
	if err != nil {
		return containerInfo{}, e.failed("looking for the container "+name, err)
	}
	if found.ContainerJSONBase == nil {
		return containerInfo{}, e.strange(errors.New("it describes a container by nothing"))
	}
	info := containerInfo{ID: found.ID, Image: found.Image, Name: strings.TrimPrefix(found.Name, "/"), Volumes: map[string]string{}}
	for _, m := range found.Mounts {
		if m.Type == mount.TypeVolume {
			info.Volumes[m.Destination] = m.Name
		}
	}
	// An unknown date counts as long ago, as an unset one does.
	info.CreatedAt, _ = time.Parse(time.RFC3339Nano, found.Created)
	if found.Config != nil {
		info.Labels = found.Config.Labels
	}
	if s := found.State; s != nil {
		info.Running, info.Paused = s.Running, s.Paused
		info.Removing = s.Status == container.StateRemoving
	}
	return info, nil
}

// containers lists all that have the labels ("name" or "name=value").
func (e *engine) containers(ctx context.Context, labels ...string) ([]containerInfo, error) {
	found, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: withLabels(labels)})
	if err != nil {
		return nil, e.failed("listing containers", err)
	}
	infos := make([]containerInfo, 0, len(found))
	for _, c := range found {
		info := containerInfo{
			ID: c.ID, Labels: c.Labels, CreatedAt: time.Unix(c.Created, 0),
			Running: c.State == container.StateRunning, Removing: c.State == container.StateRemoving,
		}
		if len(c.Names) > 0 {
			info.Name = strings.TrimPrefix(c.Names[0], "/")
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func withLabels(labels []string) filters.Args {
	args := filters.NewArgs()
	for _, label := range labels {
		args.Add("label", label)
	}
	return args
}

// put unpacks a plain tar archive below dir of a container. It is never
// compressed: some daemons unpack compressed ones unsafely.
func (e *engine) put(ctx context.Context, id, dir string, archive io.Reader) error {
	return e.failed("writing to "+dir+" of the container",
		e.api.CopyToContainer(ctx, id, dir, archive, container.CopyToContainerOptions{}))
}

// get reads a file of a container as a tar archive.
func (e *engine) get(ctx context.Context, id, path string) (io.ReadCloser, error) {
	body, _, err := e.api.CopyFromContainer(ctx, id, path)
	return body, e.failed("reading "+path+" of the container", err)
}

// failed says what was being done when the daemon answered err, and keeps what
// kind of failure it was. A nil err is nil.
func (e *engine) failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case isConnection(err): // first: a dial that took too long looks like the end of a context, too
		return e.unreachable(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	answer := e.answered(doing, err)
	switch {
	case errdefs.IsNotFound(err):
		answer.Err = errors.Join(errNotFound, err)
	case errdefs.IsConflict(err):
		answer.Err = errors.Join(errConflict, err)
	}
	return answer
}

// isConnection reports whether the daemon could not be spoken to at all.
func isConnection(err error) bool {
	return client.IsErrConnectionFailed(err) || errors.As(err, new(connectionError))
}
