// Package dockertest makes the small images that tests and demonstrations run
// in, without a registry: archives in the form of "docker save", built in
// memory, equal byte for byte for equal contents, and loaded in a fraction of a
// second. It uses the docker command, so that it shares no code with what it
// helps to test.
package dockertest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"runtime"
	"time"
)

// File is one entry of an image.
type File struct {
	// Path is absolute. Directories above it are made, owned by root.
	Path string
	Mode fs.FileMode // type and permissions
	UID  int
	GID  int
	// Data is the content, Link the target of a symbolic link.
	Data []byte
	Link string
}

// Image describes an image of one layer.
type Image struct {
	Files []File
	// Arch is the CPU, "" for this machine's.
	Arch string
	// User, Env and Volumes are the image's settings.
	User    string
	Env     []string
	Volumes []string
}

// Archive is the image in the form of "docker save", to be known as name.
func (i Image) Archive(name string) ([]byte, error) {
	layer, err := i.layer()
	if err != nil {
		return nil, err
	}
	arch := i.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	volumes := map[string]struct{}{}
	for _, v := range i.Volumes {
		volumes[v] = struct{}{}
	}
	config, err := json.Marshal(map[string]any{
		"architecture": arch,
		"os":           "linux",
		"created":      time.Unix(0, 0).UTC(),
		"config":       map[string]any{"User": i.User, "Env": i.Env, "Volumes": volumes},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
	})
	if err != nil {
		return nil, err
	}
	configName, layerName := sum(config)+".json", sum(layer)+"/layer.tar"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{name}, "Layers": []string{layerName},
	}})
	if err != nil {
		return nil, err
	}
	return pack([]File{
		{Path: configName, Mode: 0o644, Data: config},
		{Path: layerName, Mode: 0o644, Data: layer},
		{Path: "manifest.json", Mode: 0o644, Data: manifest},
	})
}

// layer is the file system as an archive, with the directories that the files
// need.
func (i Image) layer() ([]byte, error) {
	var all []File
	made := map[string]bool{".": true}
	for _, f := range i.Files {
		if f.Mode.IsDir() {
			made[path.Clean(f.Path[1:])] = true
		}
	}
	var parents func(name string)
	parents = func(name string) {
		dir := path.Dir(name)
		if made[dir] {
			return
		}
		parents(dir)
		made[dir] = true
		all = append(all, File{Path: dir, Mode: fs.ModeDir | 0o755})
	}
	for _, f := range i.Files {
		f.Path = path.Clean(f.Path[1:])
		parents(f.Path)
		all = append(all, f)
	}
	return pack(all)
}

func pack(files []File) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{
			Name: f.Path, Mode: int64(f.Mode.Perm()), Uid: f.UID, Gid: f.GID,
			Size: int64(len(f.Data)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}
		switch f.Mode.Type() {
		case fs.ModeDir:
			header.Typeflag, header.Name = tar.TypeDir, f.Path+"/"
		case fs.ModeSymlink:
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.Link
		default:
			header.Typeflag = tar.TypeReg
		}
		if f.Mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// read makes an entry of a file of this machine, under its own name.
func read(name string) (File, error) {
	data, err := os.ReadFile(name)
	return File{Path: name, Mode: 0o755, Data: data}, err
}
