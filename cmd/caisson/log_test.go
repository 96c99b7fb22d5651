package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A spool takes everything at once, keeps the first of what is not read, and says
// what is missing.
func TestSpool(t *testing.T) {
	in, out := io.Pipe()
	s := newSpool(out)
	line := strings.Repeat("x", 1<<10-1) + "\n"
	for range 4 * maxSpool / len(line) {
		if n, err := io.WriteString(s, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	text := make(chan string)
	go func() {
		all, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		text <- string(all)
	}()
	s.close()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-text
	kept := strings.Count(got, line)
	lost := 4*maxSpool/len(line) - kept
	if want := fmt.Sprintf("%d lines of the log are missing", lost); kept < maxSpool/len(line) || lost == 0 || !strings.Contains(got, want) {
		t.Errorf("%d lines came, and at the end %q", kept, got[strings.LastIndex(got, line)+len(line):])
	}
}

// A client that takes stderr and never reads it gets its answers, and the
// service ends with it.
func TestServeUnreadLog(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), "serve")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "CAISSON_CONFIG=")
	stderr, unread, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd.Stderr = unread
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unread.Close(); err != nil {
		t.Fatal(err)
	}
	const bad = 5000 // lines of log: several times what a pipe holds
	go func() {
		defer in.Close()
		write := func(body string) {
			if _, err := fmt.Fprintf(in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Error(err)
			}
		}
		write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null}}`)
		for range bad {
			write(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{}}}`)
		}
		write(`{"jsonrpc":"2.0","id":"last","method":"profile/list","params":{}}`)
	}()
	all, err := io.ReadAll(bufio.NewReader(out))
	if err != nil || !bytes.Contains(all, []byte(`"id":"last"`)) {
		t.Errorf("no answer behind %d lines of log: %v", bad, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the service ended with %v", err)
	}
}
