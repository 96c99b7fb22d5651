package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
)

// pipes are the two ends of a program's standard streams as one.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// TestServe is the shortest life of a service, led by a client library that is
// not ours.
func TestServe(t *testing.T) {
	runtimeDir, err := os.MkdirTemp("", "crt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtimeDir)
	cmd := exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), "serve")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_RUNTIME_DIR="+runtimeDir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "CAISSON_CONFIG=")
	cmd.Stderr = os.Stderr
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
	ignore := jsonrpc2.HandlerWithError(func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) (any, error) {
		return nil, nil
	})
	conn := jsonrpc2.NewConn(t.Context(), jsonrpc2.NewBufferedStream(pipes{out, in}, jsonrpc2.VSCodeObjectCodec{}), ignore)
	var initialized struct {
		ProtocolVersion int
		ServerInfo      struct{ Name, Version string }
	}
	if err := conn.Call(t.Context(), "initialize", map[string]any{"processId": os.Getpid()}, &initialized); err != nil {
		t.Fatal(err)
	}
	if initialized.ProtocolVersion != 1 || initialized.ServerInfo.Name != "caisson" || initialized.ServerInfo.Version != testVersion {
		t.Errorf("%+v", initialized)
	}
	var profiles struct{ Default string }
	if err := conn.Call(t.Context(), "profile/list", struct{}{}, &profiles); err != nil || profiles.Default != "local" {
		t.Errorf("%+v, %v", profiles, err)
	}
	if err := errors.Join(conn.Call(t.Context(), "shutdown", nil, nil), conn.Notify(t.Context(), "exit", nil)); err != nil {
		t.Error(err)
	}
	<-conn.DisconnectNotify() // the pipe must be read to its end before Wait
	if err := cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}
