package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// A module with its metering that is damaged may well be one without, or one that
// does something else: each of its bits counts.
func TestDamagedModule(t *testing.T) {
	c, err := openCache(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	const sum = "0123456789abcdef"
	if err := c.store(sum, command(0x01)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(c.path(sum))
	if err != nil {
		t.Fatal(err)
	}
	if got, kept := c.load(sum); !kept || string(got) != string(command(0x01)) {
		t.Errorf("what was kept is %q, %v", got, kept)
	}
	for i := range whole {
		damaged := []byte(string(whole))
		damaged[i] ^= 1 << (i % 8)
		for _, b := range [][]byte{damaged, whole[:i]} {
			if err := os.WriteFile(c.path(sum), b, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, kept := c.load(sum); kept {
				t.Errorf("at byte %d of %d: what is damaged is taken", i, len(whole))
			}
		}
	}
}
