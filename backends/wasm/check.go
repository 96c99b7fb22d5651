package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

// smallest is the smallest module that is a command: it has a page of memory and
// ends at once.
//
//	(module (memory (export "memory") 1) (func (export "_start")))
var smallest = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" +
	"\x03\x02\x01\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" +
	"\x0a\x04\x01\x02\x00\x0b")

// Check compiles and runs a module in an engine of its own, and looks for the
// profile's directories and modules.
func (b *Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	began := time.Now()
	engine, cache := b.checkEngine(ctx, p)
	var h backends.Health
	for _, c := range []backends.Check{checkPlatform(), engine, checkConfinement(), cache} {
		h.Add(c)
	}
	for _, o := range p.Preopens {
		h.Add(checkDirectory(o))
	}
	for _, m := range p.Modules {
		h.Add(checkModule(m))
	}
	h.Duration = time.Since(began)
	return h
}

// checkPlatform never fails: where nothing is compiled an interpreter runs, at a
// tenth of the speed.
func checkPlatform() backends.Check {
	c := backends.Check{Name: "platform", OK: true, Detail: runtime.GOOS + "/" + runtime.GOARCH}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		c.Detail += ": modules are interpreted, not compiled"
	}
	return c
}

// checkConfinement never fails: it is the second wall, behind that of the engine
// itself.
func checkConfinement() backends.Check {
	c := backends.Check{Name: "confinement", OK: true}
	abi, err := confine.ABI()
	switch {
	case err != nil:
		c.Detail = "the engine's process may write what the user may: " + err.Error()
	case abi < confine.RequiredABI:
		c.Detail = fmt.Sprintf("the engine's process may write what the user may: Landlock ABI %d is older than %d", abi, confine.RequiredABI)
	default:
		c.Detail = fmt.Sprintf("Landlock ABI %d: the engine's process writes only what guests may", abi)
	}
	return c
}

// checkEngine starts an engine and runs the smallest module in it, within the
// profile's limits.
func (b *Backend) checkEngine(ctx context.Context, p profile.Profile) (engine, cache backends.Check) {
	cache = backends.Check{Name: "cache", OK: true, Detail: "nothing is kept"}
	p.Preopens = nil
	result, problem, err := b.tryEngine(ctx, p)
	engine = backends.NewCheck("engine", err, fmt.Sprintf("a module was compiled and ran, and left %d of %d fuel", result.FuelRemaining, p.MaxFuel))
	if !engine.OK {
		return engine, cache
	}
	switch {
	case problem != "":
		cache.Detail = problem
		cache.Hint = "make the directory yours alone (chmod 0700); until then every service compiles again"
	case b.o.CacheDir != "":
		cache.Detail = b.o.CacheDir
	}
	return engine, cache
}

func (b *Backend) tryEngine(ctx context.Context, p profile.Profile) (result backends.ModuleResult, cacheProblem string, err error) {
	dir, err := os.MkdirTemp("", "caisson-check-")
	if err != nil {
		return result, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	module := filepath.Join(dir, "smallest.wasm")
	if err := os.WriteFile(module, smallest, 0o600); err != nil {
		return result, "", err
	}
	e := newEnvironment(b, backends.Binding{Session: "check", Profile: p, StateDir: dir}, nil)
	defer func() { err = errors.Join(err, e.Detach(context.WithoutCancel(ctx))) }()
	sum := sha256.Sum256(smallest)
	result, err = e.RunModule(ctx, backends.ModuleRequest{ID: "check", Path: module, SHA256: hex.EncodeToString(sum[:])})
	return result, e.engine.cacheProblem(), err
}

func checkDirectory(o profile.Preopen) backends.Check {
	c := backends.Check{Name: "directory " + o.Guest, Detail: o.Host}
	if o.ReadOnly {
		c.Detail += ", read-only"
	}
	if strings.HasPrefix(o.Host, profile.WorkspaceFolder) {
		c.OK = true // which folder that is only a session knows
		return c
	}
	info, err := os.Stat(o.Host)
	switch {
	case err != nil:
		c.Detail, c.Hint = err.Error(), "make it, or correct preopens in the profile"
	case !info.IsDir():
		c.Detail, c.Hint = o.Host+" is not a directory", "correct preopens in the profile"
	default:
		c.OK = true
	}
	return c
}

func checkModule(m string) backends.Check {
	c := backends.Check{Name: "module " + programName(m), OK: true, Detail: m}
	if isDigest(m) {
		c.Name = "module"
		return c // whether it is registered is not the profile's matter
	}
	var h hashes
	_, err := h.of(m)
	return backends.NewCheck(c.Name, err, m)
}
