package handover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long tests wait for what should come at once.
const patience = 30 * time.Second

// host is who started an attach: the other ends of its input and its output.
type host struct {
	in, out   *os.File
	attachIn  *os.File
	attachOut *os.File
}

// letGo closes what the attach holds, as its end does.
func (h *host) letGo() {
	h.attachIn.Close()
	h.attachOut.Close()
}

// pipesOf are two pipes. As a shell's, they block.
func pipesOf(t *testing.T) *host {
	t.Helper()
	var ends [2][2]int
	for i := range ends {
		if err := unix.Pipe2(ends[i][:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	file := func(fd int) *os.File { return os.NewFile(uintptr(fd), "pipe") }
	return closed(t, &host{
		attachIn: file(ends[0][0]), in: file(ends[0][1]),
		out: file(ends[1][0]), attachOut: file(ends[1][1]),
	})
}

// socketsOf is one socket for both, as sshd makes it.
func socketsOf(t *testing.T) *host {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{}
	for i, f := range []**os.File{&h.in, &h.attachIn} {
		again, err := unix.FcntlInt(uintptr(fds[i]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		*f = os.NewFile(uintptr(fds[i]), "one")
		*[]**os.File{&h.out, &h.attachOut}[i] = os.NewFile(uintptr(again), "two")
	}
	return closed(t, h)
}

func closed(t *testing.T, h *host) *host {
	t.Cleanup(func() {
		h.letGo()
		h.in.Close()
		h.out.Close()
	})
	return h
}

// connection is both ends of a worker's socket.
func connection(t *testing.T) (attach, worker *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if attach, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { attach.Close() })
	if worker, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { worker.Close() })
	return attach, worker
}

// given is how a Give ended.
type given struct {
	first string
	taken bool
	err   error
}

func give(ctx context.Context, conn *net.UnixConn, in io.Reader, out io.Writer) <-chan given {
	done := make(chan given, 1)
	go func() {
		first, taken, err := Give(ctx, conn, in, out, patience)
		done <- given{string(first), taken, err}
	}()
	return done
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("it does not come")
	}
	return v
}

// write is for what must fit.
func write(t *testing.T, to io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

// read reads as much as is wanted.
func read(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("read %.40q, %v; want %.40q", got, err, want)
	}
}

// take is a Take that must succeed; it is begun before something is written.
func take(t *testing.T, conn *net.UnixConn) <-chan io.ReadWriteCloser {
	t.Helper()
	done := make(chan io.ReadWriteCloser, 1)
	go func() {
		s, err := Take(t.Context(), conn)
		if err != nil || s == nil {
			t.Errorf("took %v, %v", s, err)
			s = conn
		}
		done <- s
	}()
	return done
}

// open counts the descriptors of this process.
func open(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// descriptor is that of f, which must be kept.
func descriptor(t *testing.T, f *os.File) (n int) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// flagsOf are those of an open file description.
func flagsOf(t *testing.T, f *os.File) int {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(descriptor(t, f)), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// Whatever the pieces, all of the input arrives in its order, and answers go out past
// the attach. Nothing stays open, and what the attach holds is as it was.
func TestHandOver(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 40<<10/16) // fits into a pipe, and is several pieces
	for name, pieces := range map[string][]string{
		"a frame":           {"{}\n"},
		"half frames":       {`{"a":`, `1}` + "\n{", "}\n"},
		"a frame and more":  {"{}\n{", "}\n{}\n", "{}\n"},
		"several at once":   {"{1}\n{2}\n{3}\n", "{4}\n"},
		"more than a piece": {long, long, "\n"},
	} {
		for kind, of := range map[string]func(*testing.T) *host{"pipes": pipesOf, "a socket": socketsOf} {
			t.Run(name+", "+kind, func(t *testing.T) {
				h := of(t)
				attach, worker := connection(t)
				before := open(t)
				inFlags, outFlags := flagsOf(t, h.attachIn), flagsOf(t, h.attachOut)
				done := give(t.Context(), attach, h.attachIn, h.attachOut)
				taking := take(t, worker)
				write(t, h.in, pieces[0])
				s := receive(t, taking)
				for i, p := range pieces {
					if i > 0 {
						write(t, h.in, p)
					}
					read(t, s, p)
					write(t, s, "answer\n")
					read(t, h.out, "answer\n")
				}
				if a, b := flagsOf(t, h.attachIn), flagsOf(t, h.attachOut); a != inFlags || b != outFlags {
					t.Errorf("the flags became %#o and %#o, from %#o and %#o", a, b, inFlags, outFlags)
				}
				wantOwn(t, s)
				if kind == "pipes" {
					h.in.Close()
				} else if err := unix.Shutdown(descriptor(t, h.in), unix.SHUT_WR); err != nil {
					t.Fatal(err)
				}
				if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("at the end of the input: %d, %v", n, err)
				}
				write(t, s, "late\n")
				read(t, h.out, "late\n")
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if got := receive(t, done); got != (given{taken: true}) {
					t.Errorf("gave %+v", got)
				}
				want := before - 1 // the worker's end
				if kind == "pipes" {
					want-- // ours
				}
				if now := open(t); now != want {
					t.Errorf("%d descriptors are open, before %d, want %d", now, before, want)
				}
			})
		}
	}
}

// wantOwn checks that no command can get the stream's descriptors.
func wantOwn(t *testing.T, s io.ReadWriteCloser) {
	t.Helper()
	taken := s.(*stream)
	for what, fd := range map[string]int{"input": taken.in.fd, "output": taken.out.fd, "socket": taken.socket} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("the %s has the flags %#x, %v", what, flags, err)
		}
	}
}

// block makes a read or a write that waits, and says how it ended.
func block(s io.ReadWriter, writes bool) <-chan error {
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		close(begun)
		piece := make([]byte, 64<<10)
		for {
			var err error
			if writes {
				_, err = s.Write(piece)
			} else {
				_, err = s.Read(piece)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	<-begun
	return ended
}

// Who is blocked is let go by a Close, and by the end of the attach, which also closes
// the streams at once: the engine, whose end this test holds, learns of it.
func TestEnds(t *testing.T) {
	for kind, of := range map[string]func(*testing.T) *host{"pipes": pipesOf, "a socket": socketsOf} {
		for _, writes := range []bool{false, true} {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, writes %t, attach dies %t", kind, writes, dies), func(t *testing.T) {
					h := of(t)
					attach, worker := connection(t)
					done := give(t.Context(), attach, h.attachIn, h.attachOut)
					taking := take(t, worker)
					write(t, h.in, "{}\n")
					s := receive(t, taking)
					read(t, s, "{}\n")
					reading := block(s, false)
					ended := reading
					if writes {
						ended = block(s, true)
					}
					if dies {
						if err := attach.CloseRead(); err != nil { // as its end does
							t.Fatal(err)
						}
					} else if err := s.Close(); err != nil {
						t.Error(err)
					}
					if err := receive(t, ended); err == nil {
						t.Error("it ended without an error")
					}
					if dies && writes {
						if err := receive(t, reading); !errors.Is(err, io.EOF) {
							t.Errorf("the read ended with %v", err)
						}
					} else if writes {
						receive(t, reading)
					}
					receive(t, done)
					h.letGo()
					if _, err := io.Copy(io.Discard, h.out); err != nil && !errors.Is(err, unix.ECONNRESET) {
						t.Error(err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// What is not waited for or does not end is not handed over, and nothing of it is read.
func TestUnsuitable(t *testing.T) {
	h := pipesOf(t)
	path := filepath.Join(t.TempDir(), "frames")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	write(t, h.in, "{}\n")
	attach, _ := connection(t)
	for what, of := range map[string]struct {
		in  io.Reader
		out io.Writer
	}{
		"an input that is a file":    {file, h.attachOut},
		"an output that is a file":   {h.attachIn, file},
		"devices":                    {null, null},
		"no file":                    {strings.NewReader("x"), new(bytes.Buffer)},
		"the wrong ends of a pipe":   {h.attachOut, h.attachIn},
		"an output only for reading": {h.attachIn, h.attachIn},
	} {
		if got := receive(t, give(t.Context(), attach, of.in, of.out)); got != (given{}) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	read(t, h.attachIn, "{}\n")
}

// Whoever has nothing to say hands nothing over.
func TestNoInput(t *testing.T) {
	h := pipesOf(t)
	h.in.Close()
	attach, worker := connection(t)
	if got := receive(t, give(t.Context(), attach, h.attachIn, h.attachOut)); got != (given{}) {
		t.Errorf("gave %+v", got)
	}
	if s, err := Take(t.Context(), worker); s != nil || err != nil {
		t.Errorf("took %v, %v", s, err)
	}
}

// oldWorker stands for a worker that does not know of descriptors: it reads the socket
// alone, and answers when it has a whole frame.
func oldWorker(t *testing.T, conn *net.UnixConn, frame string) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		b := make([]byte, len(frame))
		n, err := io.ReadFull(conn, b)
		if err == nil {
			_, err = io.WriteString(conn, "{answer}\n")
		}
		if err != nil {
			t.Error(err)
		}
		got <- string(b[:n])
	}()
	return got
}

// An older worker gets all of its first frame, however long, and is relayed to.
func TestOldWorker(t *testing.T) {
	for name, pieces := range map[string][]string{
		"at once": {"{}\n"},
		"halves":  {"{", "}", "\n"},
		"long":    {strings.Repeat("x", 3*pieceSize+7), strings.Repeat("y", pieceSize), "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := pipesOf(t)
			attach, worker := connection(t)
			got := oldWorker(t, worker, strings.Join(pieces, ""))
			before := open(t)
			done := give(t.Context(), attach, h.attachIn, h.attachOut)
			for _, p := range pieces {
				write(t, h.in, p)
			}
			if frame := receive(t, got); frame != strings.Join(pieces, "") {
				t.Errorf("it got %.40q", frame)
			}
			if got := receive(t, done); got != (given{first: "{answer}\n"}) {
				t.Errorf("gave %+v", got)
			}
			if now := open(t); now != before {
				t.Errorf("%d descriptors are open, before %d", now, before)
			}
		})
	}
}

// oldAttach stands for one that knows nothing of descriptors, and strange for a peer
// that sends others than an attach does.
func TestNothingToTake(t *testing.T) {
	h := pipesOf(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, out := descriptor(t, h.attachIn), descriptor(t, h.attachOut)
	for name, fds := range map[string][]int{
		"oldAttach":                    nil,
		"strange, one":                 {in},
		"strange, three":               {in, out, out},
		"strange, many":                {in, out, in, out, in, out, in, out},
		"strange, a file":              {in, descriptor(t, file)},
		"strange, the wrong way round": {out, in},
	} {
		t.Run(name, func(t *testing.T) {
			attach, worker := connection(t)
			before := open(t)
			var rights []byte
			if fds != nil {
				rights = unix.UnixRights(fds...)
			}
			if _, _, err := attach.WriteMsgUnix([]byte("{}\n"), rights, nil); err != nil {
				t.Fatal(err)
			}
			if s, err := Take(t.Context(), worker); s != nil || err != nil {
				t.Fatalf("took %v, %v", s, err)
			}
			read(t, worker, "{}\n")
			if now := open(t); now != before {
				t.Errorf("%d descriptors are open, before %d", now, before)
			}
		})
	}
}

// Descriptors that come later are nobody's.
func TestMoreDescriptors(t *testing.T) {
	h := pipesOf(t)
	attach, worker := connection(t)
	rights := unix.UnixRights(descriptor(t, h.attachIn), descriptor(t, h.attachOut))
	send := func(text string) {
		t.Helper()
		if _, _, err := attach.WriteMsgUnix([]byte(text), rights, nil); err != nil {
			t.Fatal(err)
		}
	}
	before := open(t)
	send("{1}\n")
	s, err := Take(t.Context(), worker)
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	read(t, s, "{1}\n")
	send("{2}\n")
	send("{3}\n")
	read(t, s, "{2}\n{3}\n")
	if now := open(t); now != before+2 {
		t.Errorf("%d descriptors are open, before %d", now, before)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if now := open(t); now != before-1 {
		t.Errorf("%d descriptors are open, before %d with the connection", now, before)
	}
}

func TestCancelled(t *testing.T) {
	h := pipesOf(t)
	attach, worker := connection(t)
	giving, cancel := context.WithCancel(t.Context())
	done := give(giving, attach, h.attachIn, h.attachOut)
	taking, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := Take(taking, worker)
		failed <- err
	}()
	stop()
	if err := receive(t, failed); !errors.Is(err, context.Canceled) {
		t.Errorf("take: %v", err)
	}
	cancel()
	if got := receive(t, done); got.taken || !errors.Is(got.err, context.Canceled) {
		t.Errorf("gave %+v", got)
	}
}

// An attach whose input has ended does not wait for ever, nor one that is told to end.
func TestLingers(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled %t", cancels), func(t *testing.T) {
			h := pipesOf(t)
			attach, worker := connection(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan given, 1)
			go func() {
				_, taken, err := Give(ctx, attach, h.attachIn, h.attachOut, 10*time.Millisecond)
				done <- given{taken: taken, err: err}
			}()
			taking := take(t, worker)
			write(t, h.in, "{}\n")
			s := receive(t, taking)
			defer s.Close()
			read(t, s, "{}\n")
			want := ErrLingers
			if cancels {
				want = context.Canceled
				cancel()
			} else {
				h.in.Close()
			}
			if got := receive(t, done); !errors.Is(got.err, want) || !cancels && !got.taken {
				t.Errorf("gave %+v", got)
			}
		})
	}
}
