package supervise

import (
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Commands begin with all signals as programs expect them, whatever the program was
// told that began it all.
func TestSignalsOfCommands(t *testing.T) {
	o := options(t)
	t.Cleanup(func() { endWorker(t, o) })
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGUSR1, syscall.SIGPIPE)
	t.Cleanup(func() { signal.Reset(syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGUSR1, syscall.SIGPIPE) })
	runtime.LockOSThread() // which starts the worker
	defer runtime.UnlockOSThread()
	var blocked, before unix.Sigset_t
	for _, s := range []syscall.Signal{syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGWINCH} {
		blocked.Val[0] |= 1 << (s - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &before); err != nil {
		t.Fatal(err)
	}
	err := Start(t.Context(), "", o, nil)
	if again := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil || again != nil {
		t.Fatal(err, again)
	}

	c := connect(t, startJoin(t, o.Listen), "", t.TempDir())
	reply, err := c.Call(t.Context(), wire.MethodExecute, wire.Execute{
		Call:  wire.ToolCall{Name: "bash", Arguments: `{"command": "exec cat /proc/self/status"}`},
		Actor: "s1",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var result tool.Result
	if err := reply.Decode(&result); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"SigBlk", "SigIgn"} {
		_, rest, _ := strings.Cut(string(result.StructuredContent), set+`:\t`)
		digits, _, _ := strings.Cut(rest, `\n`)
		signals, err := strconv.ParseUint(digits, 16, 64)
		// 32 and 33 are the thread library's own, which sees to them itself.
		const threads = 0b11 << 31
		if err != nil || signals&^threads != 0 {
			t.Errorf("%s is %q, %v", set, digits, err)
		}
	}
}
