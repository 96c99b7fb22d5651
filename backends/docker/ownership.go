package docker

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// own gives the container's volumes to the user that will work in them, before
// it is started: a new volume belongs to root, and nothing that runs inside has
// the right to change that. It does so by an archive whose only entries are the
// directories themselves. It returns who the user is.
func (b *Backend) own(ctx context.Context, e *engine, id string, s containerSpec, i imageInfo) (uid, gid int, err error) {
	user := s.User
	if user == "" {
		user = i.User
	}
	if isRoot(user) {
		return 0, 0, nil
	}
	uid, gid, ok := ids(user)
	if !ok {
		if uid, gid, err = b.users.find(ctx, e, id, i, user); err != nil {
			return 0, 0, err
		}
	}
	archive, err := directories(s, uid, gid)
	if err != nil {
		return 0, 0, err
	}
	into := id
	if s.ReadOnlyRoot {
		// The engine refuses to write to "/" of such a container, and the entry
		// of a volume's own directory can be written from above it only.
		helper := containerSpec{
			Image: s.Image, Platform: s.Platform, Entrypoint: s.Entrypoint, Network: "none",
			VolumesFrom: []string{id}, Labels: maps.Clone(s.Labels),
		}
		helper.Labels[labelKind] = kindHelper
		if into, err = b.create(ctx, e, helper); err != nil {
			return 0, 0, err
		}
		defer b.discard(ctx, e, into)
	}
	return uid, gid, e.put(ctx, into, "/", bytes.NewReader(archive))
}

// directories is an archive of the mount points of the container's anonymous
// volumes, owned by the user.
func directories(s containerSpec, uid, gid int) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, m := range s.Mounts {
		if m.Kind != volumeMount || m.Source != "" {
			continue
		}
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: strings.TrimPrefix(m.Target, "/") + "/",
			Mode: 0o755, Uid: uid, Gid: gid, ModTime: time.Now(),
		})
		if err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

// users remembers the numbers of users that images know by name: an image never
// changes, and reading a file of it costs a twentieth of a second.
type users struct {
	mu    sync.Mutex
	known map[string][2]int // by image and name
}

func (u *users) find(ctx context.Context, e *engine, container string, i imageInfo, user string) (uid, gid int, err error) {
	key := i.ID + " " + user
	u.mu.Lock()
	found, ok := u.known[key]
	u.mu.Unlock()
	if ok {
		return found[0], found[1], nil
	}
	if uid, gid, err = lookUp(ctx, e, container, user); err != nil {
		return 0, 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil || len(u.known) >= maxUsers {
		u.known = map[string][2]int{}
	}
	u.known[key] = [2]int{uid, gid}
	return uid, gid, nil
}

// lookUp finds the numbers of a user name in the image's own list.
func lookUp(ctx context.Context, e *engine, id, user string) (uid, gid int, err error) {
	name, _, _ := strings.Cut(user, ":")
	missing := func(err error) error {
		return tool.Errorf(tool.ConfigInvalid, "the image has no user %q: %w", name, err).
			WithHint("write the user by numbers: uid:gid")
	}
	archive, err := e.get(ctx, id, "/etc/passwd")
	if errors.Is(err, errNotFound) {
		return 0, 0, missing(errors.New("it has no /etc/passwd"))
	}
	if err != nil {
		return 0, 0, err
	}
	defer archive.Close()
	r := tar.NewReader(archive)
	header, err := r.Next()
	if err != nil {
		return 0, 0, missing(err)
	}
	if header.Typeflag != tar.TypeReg {
		return 0, 0, missing(errors.New("/etc/passwd is no regular file"))
	}
	if uid, gid, err = findUser(io.LimitReader(r, maxPasswdBytes), name); err != nil {
		return 0, 0, missing(err)
	}
	return uid, gid, nil
}

// findUser reads lines of the form name:password:uid:gid:...
func findUser(passwd io.Reader, name string) (uid, gid int, err error) {
	lines := bufio.NewScanner(passwd)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 4 || fields[0] != name {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		if err != nil || uid < 0 {
			return 0, 0, fmt.Errorf("its user id %q is no number", fields[2])
		}
		gid, err := strconv.Atoi(fields[3])
		if err != nil || gid < 0 {
			return 0, 0, fmt.Errorf("its group id %q is no number", fields[3])
		}
		return uid, gid, nil
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	return 0, 0, errors.New("/etc/passwd does not list it")
}
