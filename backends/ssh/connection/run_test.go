package connection

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// box is a connection to a plain server.
func box(t testing.TB, o sshtest.Options, lines ...string) *Conn {
	t.Helper()
	key := sshtest.NewKey(t, "ed25519", "")
	o.Authorized = []sshtest.Key{key}
	s := sshtest.Start(t, o)
	c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, lines...))
	return dial(t, newPool(t), c, "box")
}

// TestExec: what a command gets and gives.
func TestExec(t *testing.T) {
	t.Parallel()
	conn := box(t, sshtest.Options{Banner: "Authorised use only\n"})
	for _, tt := range []struct {
		command, stdin string
		want           Result
	}{
		{"echo out; echo err >&2", "", Result{Stdout: []byte("out\n"), Stderr: "err\n"}},
		{"cat; exit 3", "in", Result{Stdout: []byte("in"), Exit: Exit{Code: 3}}},
		{"kill -TERM $$", "", Result{Exit: Exit{Code: 143, Signal: "TERM"}}},
		// Input that nobody reads holds nothing up.
		{"exec 0<&-; echo done", strings.Repeat("x", 8<<20), Result{Stdout: []byte("done\n")}},
		{"cat", "", Result{}},
		{"exec >&- 2>&-; sleep 0.1", "", Result{}},
		{"sleep 600 >/dev/null 2>&1 </dev/null & echo $! >/dev/null; kill $!", "", Result{}},
	} {
		got, err := run(t.Context(), conn, tt.command, strings.NewReader(tt.stdin))
		if err != nil {
			t.Errorf("%s: %s", tt.command, explain(err))
			continue
		}
		if got.Exit != tt.want.Exit || !bytes.Equal(got.Stdout, tt.want.Stdout) || got.Stderr != tt.want.Stderr {
			t.Errorf("%s: got %+v, want %+v", tt.command, got, tt.want)
		}
	}
	if got := (Exit{Code: 143, Signal: "TERM"}).String() + ", " + (Exit{Code: 2}).String(); got != "signal TERM, exit status 2" {
		t.Error(got)
	}
	got, err := run(t.Context(), conn, fmt.Sprintf("head -c %d /dev/zero >&2; echo end >&2", 4*MaxStderr), nil)
	if err != nil || len(got.Stderr) != MaxStderr || !strings.HasSuffix(got.Stderr, "end\n") {
		t.Errorf("a lot of stderr: %d bytes, %v", len(got.Stderr), err)
	}
	s, err := conn.Exec(t.Context(), "exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Wait(ctx); tool.KindOf(err) != tool.Timeout {
		t.Errorf("over the time: %v", err)
	}
	if err := errors.Join(s.Signal("TERM"), s.Close()); err != nil {
		t.Error(err)
	}
	says(t, conn, "echo still there", "still there\n")
}

// TestStream: much data both ways at once, to the last byte.
func TestStream(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{nil, {command}} {
		conn := box(t, sshtest.Options{}, lines...)
		s, err := conn.Exec(t.Context(), "cat")
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte("0123456789abcdef\n"), 1<<19)
		sum := sha256.Sum256(data)
		sent := make(chan error, 1)
		go func() {
			_, err := s.Write(data)
			err = errors.Join(err, s.CloseWrite(), s.CloseWrite())
			if _, werr := s.Write([]byte("x")); !errors.Is(werr, io.ErrClosedPipe) {
				err = errors.Join(err, fmt.Errorf("writing after the end: %w", werr))
			}
			sent <- err
		}()
		hash := sha256.New()
		if _, err := io.Copy(hash, s); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got := hash.Sum(nil); !bytes.Equal(got, sum[:]) {
			t.Errorf("got %s", hex.EncodeToString(got))
		}
		if exit, err := s.Wait(t.Context()); err != nil || exit != (Exit{}) {
			t.Errorf("%v %v", exit, err)
		}
		// A command that is gone takes no more.
		if _, err := s.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("writing to nobody: %v", err)
		}
	}
}

// TestSignal: a signal reaches the command, unless it is root's: then OpenSSH has no
// process apart that would pass it on.
func TestSignal(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	server := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	conn := dial(t, newPool(t), sshtest.NewClient(t, server.KnownHosts(), sshtest.HostBlock("box", server, key)), "box")
	// The end of its input ends the command at the latest.
	s, err := conn.Exec(t.Context(), "echo up; exec cat")
	if err != nil {
		t.Fatal(err)
	}
	// Before it has a process group the server drops signals.
	if _, err := s.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal("KILL"); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		server.WaitLog(t, "session signalling requires privilege separation")
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if exit, err := s.Wait(ctx); err != nil || exit.Signal != "KILL" {
		t.Fatalf("%v %v: %s", exit, err, server.Log())
	}
}

// TestEnvironment: SendEnv and SetEnv.
func TestEnvironment(t *testing.T) {
	t.Setenv("SSHTEST_SENT", "one two")
	t.Setenv("SSHTEST_SET", "not this")
	t.Setenv("OTHER_SSHTEST", "not sent")
	conn := box(t, sshtest.Options{}, "SendEnv SSHTEST_*", "SetEnv SSHTEST_SET=three")
	says(t, conn, `echo "$SSHTEST_SENT, $SSHTEST_SET, $OTHER_SSHTEST"`, "one two, three, \n")
}

// TestNoSFTP: a machine without it, and one where something else answers.
func TestNoSFTP(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]sshtest.Options{
		"none":    {NoSFTP: true},
		"noise":   {NoSFTP: true, Lines: []string{"Subsystem sftp /bin/echo this is no sftp"}},
		"nothing": {NoSFTP: true, Lines: []string{"Subsystem sftp /bin/false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := box(t, o)
			if _, err := conn.SFTP(t.Context()); !errors.Is(err, ErrNoSFTP) {
				t.Fatalf("got %v", err)
			}
			says(t, conn, "echo else", "else\n")
		})
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		conn := box(t, sshtest.Options{NoSFTP: true, Lines: []string{"Subsystem sftp /bin/sleep 600"}})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := conn.SFTP(ctx); tool.KindOf(err) != tool.Timeout {
			t.Fatalf("got %v", err)
		}
	})
}

// TestAccounts: accounts of other users.
func TestAccounts(t *testing.T) {
	t.Parallel()
	a := sshtest.FindAccounts(t)
	p := newPool(t)
	connect := func(t *testing.T, kind string) *Conn {
		c := sshtest.NewClient(t, a.KnownHosts(), sshtest.HostBlock("box", a.As(t, kind), a.Key))
		return dial(t, p, c, "box")
	}
	for kind, want := range map[string]string{
		"plain": "caisson-ssh-plain\n", "restricted": "caisson-ssh-restricted\n", "sh": "caisson-ssh-sh\n",
		"noisy": "Welcome, caisson-ssh-noisy\ncaisson-ssh-noisy\n", "readonly": "caisson-ssh-readonly\n",
		"noexec": "caisson-ssh-noexec\n", "full": "caisson-ssh-full\n",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			says(t, connect(t, kind), "id -un", want)
		})
	}
	t.Run("nologin", func(t *testing.T) {
		t.Parallel()
		r, err := run(t.Context(), connect(t, "nologin"), "id -un", nil)
		if err != nil || r.Code == 0 || !strings.Contains(string(r.Stdout), "not available") {
			t.Fatalf("%+v %v", r, err)
		}
	})
}

// BenchmarkEcho is one line there and back over a session.
func BenchmarkEcho(b *testing.B) {
	conn := box(b, sshtest.Options{})
	s, err := conn.Exec(b.Context(), "cat")
	if err != nil {
		b.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 100)
	for b.Loop() {
		if _, err := s.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(s, line); err != nil {
			b.Fatal(err)
		}
	}
}
