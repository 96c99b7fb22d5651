package rpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A wrong configuration is shown at the profiles: no list would leave people
// without a place to see it.
func TestProfileListOfWrongConfiguration(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, func(s *server) { s.o.Open = openDouble(dir, newDouble()) })
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	for _, row := range []struct{ text, want string }{
		{`{"execution_environments": {"profiles": {"box": {"backend": "docker", "imag": "a"}}}}`, `"imag"`},
		{`{`, ":1:"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := c.ProfileList(t.Context())
		if err != nil || len(got.Profiles) == 0 || got.Profiles[0].Name != "local" {
			t.Fatalf("%s: got %+v, %v", row.text, got, err)
		}
		for _, p := range got.Profiles {
			if p.Valid || !strings.Contains(p.Problem, row.want) {
				t.Errorf("%s: got %+v", row.text, p)
			}
		}
	}
}
