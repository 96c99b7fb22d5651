package supervise

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  int
	}{
		"no limit is seen":    {nil, 0},
		"none":                {map[string]string{"pids.max": "max\n", "pids.current": "9\n"}, 0},
		"much":                {map[string]string{"pids.max": "512\n", "pids.current": "12\n"}, 125},
		"little":              {map[string]string{"pids.max": "24\n", "pids.current": "17\n"}, 1},
		"nothing":             {map[string]string{"pids.max": "24\n", "pids.current": "24\n"}, 0},
		"a lower one by hand": {map[string]string{"pids.max": "24\n", "pids.current": "30\n"}, 0},
		"of version 1":        {map[string]string{"pids/pids.max": "512\n", "pids/pids.current": "12\n"}, 125},
		"no use of it":        {map[string]string{"pids.max": "512\n"}, 0},
		"no number":           {map[string]string{"pids.max": "\n", "pids.current": "1\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "pids"), 0o700); err != nil {
				t.Fatal(err)
			}
			for file, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := room([]string{dir, filepath.Join(dir, "pids")}); got != tt.want {
				t.Errorf("room for %d, want %d", got, tt.want)
			}
		})
	}
}
