package dockertest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/profile"
)

// The user that the images with a user list have beside root.
const (
	UserName = "app"
	UserID   = 1000
)

// Open is a directory of the [Shell] image that everybody may write to.
const Open = "/srv"

// Bare is an image of one file, which is no program: there is no shell, no
// library, no user list, nothing else.
func Bare() Image {
	return Image{Files: []File{{Path: "/only", Mode: 0o644, Data: []byte("the only file\n")}}}
}

// lists are the files that name users.
func lists() []File {
	return []File{
		{Path: "/etc/passwd", Mode: 0o644, Data: fmt.Appendf(nil,
			"root:x:0:0::/root:/bin/sh\n%s:x:%d:%d::/home/app:/bin/sh\n", UserName, UserID, UserID)},
		{Path: "/etc/group", Mode: 0o644, Data: fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\n", UserName, UserID)},
		{Path: "/home/app", Mode: fs.ModeDir | 0o755, UID: UserID, GID: UserID},
	}
}

// searchPath is the variable that images set, so that commands are found.
var searchPath = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// Skeleton is an image without programs whose [SkeletonMounts] lend it those of
// this machine, read-only: git, python3, node and all else that is installed.
func Skeleton() Image {
	files := lists()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		files = append(files, File{Path: "/" + dir, Mode: fs.ModeSymlink | 0o777, Link: "usr/" + dir})
	}
	files = append(files, File{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777})
	return Image{Files: files, Env: searchPath}
}

// SkeletonMounts are the folders of this machine that a [Skeleton] needs, for a
// daemon that sees them.
func SkeletonMounts() []profile.Mount {
	var mounts []profile.Mount
	for _, dir := range []string{"/usr", "/etc/alternatives"} {
		if _, err := os.Stat(dir); err == nil {
			mounts = append(mounts, profile.Mount{Source: dir, Target: dir, ReadOnly: true})
		}
	}
	return mounts
}

// Shell is an image with bash, git and the small commands that scripts use, taken
// from this machine with the libraries that they need.
func Shell(ctx context.Context) (Image, error) {
	programs := strings.Fields(`bash sh git
		awk basename cat chmod chown cmp cp cut date dd dirname echo env expr false find grep head id kill ln ls
		mkdir mkfifo mknod mktemp mv nohup od printf ps pwd readlink realpath rm rmdir sed seq setsid sha256sum
		sleep sort stat stty sync tail tee test timeout touch tr true truncate tty uname uniq wc xargs yes`)
	i, err := Programs(ctx, programs...)
	i.Files = append(i.Files, lists()...)
	for _, dir := range []string{"/tmp", Open} {
		i.Files = append(i.Files, File{Path: dir, Mode: fs.ModeDir | fs.ModeSticky | 0o777})
	}
	return i, err
}

// Programs is an image of programs of this machine, found by PATH, under
// /usr/bin, with the libraries that they need where they expect them. One that
// is not installed is left out.
func Programs(ctx context.Context, names ...string) (Image, error) {
	files := map[string]File{}
	for _, name := range names {
		found, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		program, err := read(found)
		if err != nil {
			return Image{}, err
		}
		program.Path = filepath.Join("/usr/bin", name)
		files[program.Path] = program
		// The loader's script resolves what the program asks for; a static
		// program is an error to it, and needs nothing.
		listed, err := exec.CommandContext(ctx, "ldd", found).Output()
		if err != nil && ctx.Err() != nil {
			return Image{}, ctx.Err()
		}
		for word := range strings.FieldsSeq(string(listed)) {
			if !strings.HasPrefix(word, "/") || files[word].Path != "" {
				continue
			}
			if files[word], err = read(word); err != nil {
				return Image{}, err
			}
		}
	}
	files["/bin"] = File{Path: "/bin", Mode: fs.ModeSymlink | 0o777, Link: "usr/bin"}
	i := Image{Env: searchPath}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "/bin" && strings.HasPrefix(name, "/bin/") {
			continue // reached by the link
		}
		i.Files = append(i.Files, files[name])
	}
	return i, nil
}
