//go:build linux

package process

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Each benchmark of ours has its floor beside it: read them as ratios.

func BenchmarkStartTrue(b *testing.B) {
	b.Run("exec", func(b *testing.B) { benchExec(b, "/bin/true") })
	for _, mode := range []tool.Mode{tool.Unconfined, tool.Standard} {
		b.Run(string(mode), func(b *testing.B) {
			ended := make(chan struct{}, 1)
			m, _ := newTest(b, func(o *Options) {
				o.OnEvent = func(e tool.ProcessEvent) {
					if e.Type == tool.EventStopped {
						ended <- struct{}{}
					}
				}
			})
			for b.Loop() {
				if _, err := m.Start(b.Context(), tool.StartRequest{Argv: []string{"/bin/true"}, PermissionMode: mode}); err != nil {
					b.Fatal(err)
				}
				<-ended
			}
		})
	}
}

func BenchmarkRunTrue(b *testing.B) {
	b.Run("exec", func(b *testing.B) { benchExec(b, "/bin/bash", "-c", "true") })
	for _, mode := range []tool.Mode{tool.Unconfined, tool.Standard, tool.ReadOnly} {
		b.Run(string(mode), func(b *testing.B) {
			m, _ := newTest(b)
			for b.Loop() {
				r, err := m.Run(b.Context(), Command{Command: "true", Mode: mode, Timeout: 1 << 40})
				if err != nil || r.ExitCode != 0 {
					b.Fatal(r, err)
				}
			}
		})
	}
}

func benchExec(b *testing.B, name string, args ...string) {
	for b.Loop() {
		if err := exec.Command(name, args...).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOutput is a process that writes 256 MiB which nobody reads, beside
// the same into a file.
func BenchmarkOutput(b *testing.B) {
	const line = "head -c 268435456 /dev/zero"
	b.Run("file", func(b *testing.B) {
		b.SetBytes(256 << 20)
		file := filepath.Join(b.TempDir(), "out")
		for b.Loop() {
			if err := exec.Command("/bin/sh", "-c", line+" > "+file).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unread", func(b *testing.B) {
		b.SetBytes(256 << 20)
		m, _ := newTest(b)
		for b.Loop() {
			p := start(b, m, line)
			wait(b, m, p.ID)
			if _, err := m.Cleanup(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
