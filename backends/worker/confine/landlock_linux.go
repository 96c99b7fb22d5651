package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

const (
	// fileRights are the write-type rights that make sense on a file.
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// treeRights are all write-type rights of ABI 3. Refer is among them: an
	// unhandled refer right would refuse every rename between directories.
	treeRights = fileRights |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// deviceRights are handled and never allowed: a device that root makes in
	// its workspace leads to the whole disk, whatever the paths say.
	deviceRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// devices are what programs write to without changing anything: they stay
// writable, not removable, in every mode. A system may lack some.
var devices = [...]string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
	"/dev/tty", "/dev/ptmx", "/dev/pts",
}

// ABI is the version of Landlock's interface that the kernel has. The error
// tells absence: a kernel built or booted without it, or a filter that refuses
// the call.
func ABI() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("ask the kernel for its Landlock version: %w", errno)
	}
	return int(v), nil
}

func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

// start makes the thread of p, limited when p limits anything.
func start(p Policy) (*Launcher, error) {
	if !p.Confines() {
		return startThread(func() error { return nil })
	}
	ruleset, err := newRuleset(p)
	if err != nil {
		return nil, err
	}
	defer unix.Close(ruleset)
	return startThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return tool.Errorf(tool.Unsupported, "forbid commands to gain privileges: %w", err)
		}
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
			return tool.Errorf(tool.Unsupported, "limit a thread by Landlock: %w", errno)
		}
		return nil
	})
}

// newRuleset makes a Landlock ruleset that handles every write and allows
// those of p. The caller closes it.
func newRuleset(p Policy) (int, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: treeRights}
	// Only the first member of the attribute is needed as a rule, and older
	// kernels know no other.
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if found, err := p.readABI(); p.Apart && err == nil && found >= ApartABI {
		attr.Scoped, size = unix.LANDLOCK_SCOPE_SIGNAL, unsafe.Offsetof(attr.Scoped)+unsafe.Sizeof(attr.Scoped)
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, tool.Errorf(tool.Unsupported, "make a Landlock ruleset: %w", errno)
	}
	ruleset := int(r)
	for _, path := range p.writable() {
		if !filepath.IsAbs(path) {
			unix.Close(ruleset)
			return -1, tool.Errorf(tool.InvalidParams, "writable path %q is not absolute", path).WithPath(path)
		}
		if err := allow(ruleset, path, treeRights&^deviceRights); err != nil && (path == p.Temp || !leadsNowhere(err)) {
			unix.Close(ruleset)
			return -1, err
		}
	}
	for _, path := range devices {
		if err := allow(ruleset, path, fileRights); err != nil && !errors.Is(err, os.ErrNotExist) {
			unix.Close(ruleset)
			return -1, err
		}
	}
	return ruleset, nil
}

// leadsNowhere reports whether a path is none that a command could write: nothing is
// there, nothing can be, or the user does not get there.
func leadsNowhere(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EACCES)
}

// allow adds the rights for path and all beneath it.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return tool.Errorf(tool.Internal, "open writable path %s: %w", path, err).WithPath(path)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return tool.Errorf(tool.Internal, "look at writable path %s: %w", path, err).WithPath(path)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights // the kernel refuses a directory's rights on a file
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return tool.Errorf(tool.Internal, "let commands write %s: %w", path, errno).WithPath(path)
	}
	return nil
}
