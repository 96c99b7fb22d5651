package supervise

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		files  map[string]string
		want   int
		untold bool // by the directories
	}{
		"no limit is seen":    {nil, 0, true},
		"none":                {map[string]string{"pids.max": "max\n", "pids.current": "9\n"}, 0, true},
		"much":                {map[string]string{"pids.max": "512\n", "pids.current": "12\n"}, 109, false},
		"little":              {map[string]string{"pids.max": "24\n", "pids.current": "17\n"}, 0, false},
		"some":                {map[string]string{"pids.max": "100\n", "pids.current": "12\n"}, 6, false},
		"nothing":             {map[string]string{"pids.max": "24\n", "pids.current": "24\n"}, 0, false},
		"a lower one by hand": {map[string]string{"pids.max": "24\n", "pids.current": "30\n"}, 0, false},
		"of version 1":        {map[string]string{"pids/pids.max": "512\n", "pids/pids.current": "12\n"}, 109, false},
		"no use of it":        {map[string]string{"pids.max": "512\n"}, 0, true},
		"no number":           {map[string]string{"pids.max": "\n", "pids.current": "1\n"}, 0, true},
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
			dirs := []string{dir, filepath.Join(dir, "pids")}
			if got := room(dirs, false); got != tt.want {
				t.Errorf("room for %d, want %d", got, tt.want)
			}
			want := tt.want
			if tt.untold {
				want = math.MaxInt
			}
			if got := room(dirs, true); got != want {
				t.Errorf("where the user may have many: room for %d, want %d", got, want)
			}
		})
	}
}
