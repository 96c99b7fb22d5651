package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// defaultContext is the docker CLI's name for "no context": DOCKER_HOST or the
// default socket. It has no file.
const defaultContext = "default"

// cliConfig is what matters here of the CLI's config.json.
type cliConfig struct {
	CurrentContext string `json:"currentContext"`
}

// contextMeta is what matters here of a context's meta.json.
type contextMeta struct {
	Name      string `json:"Name"`
	Endpoints map[string]struct {
		Host          string `json:"Host"`
		SkipTLSVerify bool   `json:"SkipTLSVerify"`
	} `json:"Endpoints"`
}

// configDir is the docker CLI's configuration directory.
func (c chooser) configDir() string {
	if dir := c.getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	return filepath.Join(c.home, ".docker")
}

// config reads the CLI's configuration; none at all is an empty one.
func (c chooser) config() (cliConfig, error) {
	var config cliConfig
	path := filepath.Join(c.configDir(), "config.json")
	if err := readJSON(path, &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return config, tool.Errorf(tool.ConfigInvalid, "the docker CLI's configuration cannot be read: %w", err).
			WithHint("repair %s, or name the daemon by docker_host in the profile", path)
	}
	return config, nil
}

// currentContext is the name of the CLI's context, "" for none.
func (c chooser) currentContext() (string, error) {
	if name := c.getenv("DOCKER_CONTEXT"); name != "" {
		return name, nil
	}
	config, err := c.config()
	return config.CurrentContext, err
}

// context reads the docker endpoint of a named context. The files are named by
// the SHA-256 of the context's name.
func (c chooser) context(name, from string) (endpoint, error) {
	if name == defaultContext {
		host := c.getenv("DOCKER_HOST")
		if host == "" {
			host = defaultHost()
		}
		return c.host(host, from)
	}
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	contexts := filepath.Join(c.configDir(), "contexts")

	var meta contextMeta
	if err := readJSON(filepath.Join(contexts, "meta", id, "meta.json"), &meta); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return endpoint{}, tool.Errorf(tool.ConfigInvalid, "there is no docker context %q (%s)", name, from).
				WithHint("%s", c.knownContexts(contexts))
		}
		return endpoint{}, tool.Errorf(tool.ConfigInvalid, "the docker context %q cannot be read: %w", name, err).
			WithHint("see docker context inspect %s", name)
	}
	docker, ok := meta.Endpoints["docker"]
	if !ok || docker.Host == "" {
		return endpoint{}, tool.Errorf(tool.ConfigInvalid, "the docker context %q names no docker endpoint", name).
			WithHint("see docker context inspect %s", name)
	}
	if err := checkHost(docker.Host); err != nil {
		return endpoint{}, tool.Errorf(tool.ConfigInvalid, "the docker context %q has the host %q: %v", name, docker.Host, err)
	}
	e := endpoint{Host: docker.Host, From: from}
	files, err := contextTLS(filepath.Join(contexts, "tls", id, "docker"), docker.SkipTLSVerify)
	if err != nil {
		return endpoint{}, tool.Errorf(tool.ConfigInvalid, "the TLS files of the docker context %q cannot be read: %w", name, err)
	}
	if e.scheme() == "tcp" {
		e.TLS = files
	}
	return e, nil
}

// contextTLS finds the PEM files that a context has, nil for none at all.
func contextTLS(dir string, skipVerify bool) (*tlsFiles, error) {
	files := &tlsFiles{SkipVerify: skipVerify}
	found := skipVerify
	for name, to := range map[string]*string{"ca.pem": &files.CA, "cert.pem": &files.Cert, "key.pem": &files.Key} {
		path := filepath.Join(dir, name)
		switch _, err := os.Stat(path); {
		case err == nil:
			*to, found = path, true
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if !found {
		return nil, nil
	}
	return files, nil
}

// knownContexts is a hint that names the contexts that are there.
func (c chooser) knownContexts(contexts string) string {
	entries, err := os.ReadDir(filepath.Join(contexts, "meta"))
	if err != nil {
		return "docker context ls shows the contexts; this configuration has none"
	}
	var names []string
	for _, entry := range entries {
		var meta contextMeta
		if readJSON(filepath.Join(contexts, "meta", entry.Name(), "meta.json"), &meta) == nil && meta.Name != "" {
			names = append(names, meta.Name)
		}
	}
	slices.Sort(names)
	return "known contexts: " + strings.Join(append([]string{defaultContext}, names...), ", ")
}

// readJSON reads a small file of the CLI's.
func readJSON(path string, to any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return err
	}
	if len(data) > maxConfigBytes {
		return fmt.Errorf("%s has more than %d bytes", path, maxConfigBytes)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
