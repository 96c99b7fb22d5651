package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/wire"
)

// The test binary is the adapter too: "adapter" and what it plays, then what that
// needs.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "adapter" {
		os.Exit(play(os.Args[2], os.Args[3:]))
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// play is one adapter, good or bad. Its result is the exit code.
func play(part string, args []string) int {
	switch part {
	case "missing-library":
		fmt.Fprintln(os.Stderr, "error while loading libsomething.so")
		return 127
	case "garbage":
		fmt.Println("Usage: something else entirely")
		fmt.Println(strings.Repeat("x", 70<<10))
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "late-garbage": // after a good beginning
		respond(func(f frame) any {
			if f.Method != wire.MethodInitialize {
				fmt.Println("debug: about to answer")
			}
			return initialized(f)
		})
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // and does not end by itself either
		time.Sleep(time.Hour)
	case "version":
		respond(func(f frame) any { return map[string]any{"version": 3, "root": "/w"} })
		return note(args[0], "ended in order")
	case "leaks-secrets": // to its log, and dies by it
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprint(os.Stderr, strings.Repeat("padding ", 2000), line)
		return 1
	case "leaks-in-replies": // what initialize told it: args are the methods that it does so for
		var told string
		respond(func(f frame) any {
			if f.Method == wire.MethodInitialize {
				told = string(f.Data) + f.Token
			}
			if slices.Contains(args, f.Method) {
				return errors.New("cannot: " + told)
			}
			return initialized(f)
		})
	case "leaks-in-garbage":
		fmt.Fprintln(os.Stderr, "reading the settings")
		respond(func(f frame) any {
			if f.Method != wire.MethodInitialize {
				fmt.Println("debug:", f.Token)
			}
			return initialized(f)
		})
	case "rootless":
		respond(func(frame) any { return map[string]any{"version": 4, "root": "w"} })
	case "plain":
		return plain(args)
	case "stubborn": // ends neither when told nor its children
		child := exec.Command("sh", "-c", "trap '' TERM HUP; sleep 300")
		if err := child.Start(); err != nil {
			return 1
		}
		_ = note(args[0], fmt.Sprint(child.Process.Pid))
		respond(func(f frame) any { return initialized(f) })
		time.Sleep(time.Hour)
	case "mute": // closes its output at the first request, and does not end
		respond(func(f frame) any {
			if f.Method != wire.MethodInitialize {
				_ = os.Stdout.Close()
			}
			return initialized(f)
		})
		time.Sleep(time.Hour)
	case "bad-end":
		respond(func(f frame) any { return initialized(f) })
		fmt.Fprintln(os.Stderr, "could not remove the machine vm-17")
		return 5
	}
	return 0
}

func note(file, text string) int {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 9
	}
	defer f.Close()
	fmt.Fprintln(f, text)
	return 0
}

// frame is what these adapters read of one.
type frame struct {
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Token  string          `json:"token"`
	Data   json.RawMessage `json:"data"`
}

func initialized(f frame) any {
	var in wire.Initialize
	if f.Method != wire.MethodInitialize || json.Unmarshal(f.Data, &in) != nil {
		return map[string]any{}
	}
	return map[string]any{"version": 4, "root": in.Root}
}

// respond answers each frame, by an error or with data, until the input ends.
func respond(answer func(frame) any) {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var f frame
		if json.Unmarshal(line, &f) != nil {
			return
		}
		reply := map[string]any{"id": f.ID}
		switch a := answer(f).(type) {
		case error:
			reply["error"] = a.Error()
		default:
			reply["data"] = a
		}
		_ = out.Encode(reply)
	}
}

// plain is an adapter with the contract's own methods only. It notes each
// initialize and each method that it is asked; it has the tools "read_file", which
// answers what it was started with, and "bash", which dies, waits or answers as its
// command says; its processes are made up.
func plain(args []string) int {
	log := args[0]
	capabilities := args[1:]
	h := &plainAdapter{log: log, capabilities: capabilities}
	err := wire.Serve(context.Background(), struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}, h, wire.ServerOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return note(log, "ended")
}
