package wasm

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

// launch starts the engine on a thread of its own that lives as long as it does: on
// Linux the kernel ends the engine with that thread. Where there is Landlock the
// engine writes nothing but what guests may, so that a fault of the compiler gives
// nobody the user's files.
func (p *engineProcess) launch(o program.Options) (started *program.Program, err error) {
	launcher, err := confine.NewLauncher(p.policy())
	if tool.KindOf(err) == tool.Unsupported {
		p.backend.o.Log.Debug("the WebAssembly engine runs without Landlock", "reason", err)
		launcher, err = confine.NewLauncher(confine.Policy{Mode: tool.Unconfined})
	}
	if err != nil {
		return nil, err
	}
	launcher.Do(func() { started, err = program.Start(o) })
	if err != nil {
		launcher.Close()
		return nil, err
	}
	go func() {
		<-started.Exited()
		launcher.Close()
	}()
	preferToEnd(started.Pid())
	return started, nil
}

// policy is what the engine may write: the directories that guests may, those of
// jobs, and the cache. What is not there yet is made, since it could not be written
// later.
func (p *engineProcess) policy() confine.Policy {
	own := guestsDir(p.at)
	policy := confine.Policy{Mode: tool.Standard, Root: own, Temp: own, Apart: true}
	for _, m := range p.setup.Mounts {
		if !m.ReadOnly {
			policy.Writable = append(policy.Writable, m.Host)
		}
	}
	if p.setup.CacheDir != "" {
		policy.Writable = append(policy.Writable, p.setup.CacheDir)
	}
	for _, dir := range []string{own, p.setup.CacheDir} {
		if dir != "" {
			_ = os.MkdirAll(dir, 0o700) // whoever needs it says that it is missing
		}
	}
	return policy
}

// preferToEnd has the kernel end the engine before the service when memory is
// short.
func preferToEnd(pid int) {
	if runtime.GOOS != "linux" {
		return
	}
	// Where it cannot be said the kernel chooses by size, which is as well.
	_ = os.WriteFile(filepath.Join("/proc", fmt.Sprint(pid), "oom_score_adj"), []byte(oomScore), 0)
}
