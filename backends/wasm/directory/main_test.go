package directory

import (
	"os"
	"path/filepath"
	"testing"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a directory that a guest sees and, beside it, a secret.
func world(t *testing.T) (dir, secret string) {
	t.Helper()
	base := t.TempDir()
	dir, secret = filepath.Join(base, "dir"), filepath.Join(base, "secret")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.WriteFile(secret, []byte("secret"), 0o644))
	return dir, secret
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mount(t *testing.T, dir string, o Options) *Directory {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	if o.Table == nil {
		o.Table = &Table{Max: 16}
	}
	return New(root, o)
}

func read(fs experimentalsys.FS, path string) (string, experimentalsys.Errno) {
	f, errno := fs.OpenFile(path, experimentalsys.O_RDONLY, 0)
	if errno != 0 {
		return "", errno
	}
	defer f.Close()
	buf := make([]byte, 64)
	n, errno := f.Read(buf)
	return string(buf[:n]), errno
}

func write(fs experimentalsys.FS, path, text string) experimentalsys.Errno {
	f, errno := fs.OpenFile(path, experimentalsys.O_WRONLY|experimentalsys.O_CREAT|experimentalsys.O_TRUNC, 0o644)
	if errno != 0 {
		return errno
	}
	if _, errno = f.Write([]byte(text)); errno != 0 {
		f.Close()
		return errno
	}
	return f.Close()
}

func second[T any](_ T, errno experimentalsys.Errno) experimentalsys.Errno { return errno }
