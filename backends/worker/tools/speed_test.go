package tools

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func BenchmarkTools(b *testing.B) {
	line := "a line of text as source has it\n"
	w := newBench(b, map[string]string{"small": strings.Repeat(line, 64), "deep/er/still/small": strings.Repeat(line, 64), "large": strings.Repeat(line, 1<<19)})
	for _, row := range []struct {
		name, tool string
		args       args
		bytes      int64
	}{
		{"read 2 KB", "read_file", args{"path": "small"}, 0},
		{"read 2 KB, deep", "read_file", args{"path": "deep/er/still/small"}, 0},
		{"read lines of 16 MiB", "read_file", args{"path": "large", "offset": 400_000, "limit": 10}, 16 << 20},
		{"write 2 KB", "write_file", args{"path": "new", "content": strings.Repeat(line, 64)}, 0},
		{"write 15 MiB", "write_file", args{"path": "new15", "content": strings.Repeat(line, 15<<15)}, 15 << 20},
		{"edit 16 MiB", "edit_file", args{"path": "large", "old_text": "nowhere", "new_text": "x"}, 16 << 20},
		{"list", "list_files", nil, 0},
	} {
		b.Run(row.name, func(b *testing.B) {
			r := request(b, row.tool, row.args)
			b.SetBytes(row.bytes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Call(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("ReadFile of 16 MiB", func(b *testing.B) {
		b.SetBytes(16 << 20)
		for b.Loop() {
			if data, err := w.ReadFile(b.Context(), "large", 0, -1); err != nil || len(data) != tool.MaxFileBytes {
				b.Fatal(len(data), err)
			}
		}
	})
}
