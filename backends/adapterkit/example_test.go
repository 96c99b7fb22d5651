package adapterkit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// text is the result of a tool that says something.
func text(s string) tool.Result {
	return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: s}}}
}

// An adapter is a main function like this one. Its workspace has one file.
func Example() {
	main := func() {
		backend, err := adapterkit.New(adapterkit.Handlers{
			Initialize: func(_ context.Context, _ *adapterkit.Session, in wire.Initialize) (string, error) {
				return in.Root, nil
			},
			Execute: func(_ context.Context, c adapterkit.Call) (tool.Result, error) {
				if c.Name != "read_file" {
					return tool.Result{}, tool.Errorf(tool.ToolNotFound, "this adapter has no tool %q", c.Name)
				}
				return text("the only file"), nil
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		if err := adapterkit.Run(context.Background(), backend, adapterkit.Options{}); err != nil {
			log.Fatal(err)
		}
	}
	_ = main
}

// The connection of an adapter is its standard input and output, or any other: here
// a host in the same program, as a test of an adapter has it.
func ExampleRun() {
	in, toAdapter := io.Pipe()
	fromAdapter, out := io.Pipe()
	backend, err := adapterkit.New(adapterkit.Handlers{
		Initialize: func(_ context.Context, s *adapterkit.Session, in wire.Initialize) (string, error) {
			return in.Root, nil
		},
		Execute: func(_ context.Context, c adapterkit.Call) (tool.Result, error) {
			return text(fmt.Sprintf("%s by %s in the mode %s with %s", c.Name, c.Actor, c.Mode, c.Arguments)), nil
		},
		Close: func(context.Context) error {
			fmt.Println("closed")
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- adapterkit.Run(context.Background(), backend, adapterkit.Options{In: in, Out: out}) }()

	ctx := context.Background()
	host := wire.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{fromAdapter, toAdapter}, wire.ClientOptions{Token: strings.Repeat("0123456789abcdef", 4)})
	ready, err := host.Initialize(ctx, wire.Initialize{Root: "/workspace", Session: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready in", ready.Root)
	reply, err := host.Call(ctx, wire.MethodExecute, &wire.Execute{
		Call: wire.ToolCall{Name: "glob", Arguments: `{"pattern":"*.go"}`}, Actor: "s1",
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := wire.ParseResult(reply.Data)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].Text)
	toAdapter.Close() // the end of its input ends it
	fmt.Println(<-ended)
	host.Close()
	// Output:
	// ready in /workspace
	// glob by s1 in the mode standard with {"pattern":"*.go"}
	// closed
	// <nil>
}

// Processes that outlive their request end with the session: the kit announces
// process.start.v1 for what has Start, List and Close.
func ExampleNew() {
	var session *adapterkit.Session
	_, err := adapterkit.New(adapterkit.Handlers{
		Initialize: func(_ context.Context, s *adapterkit.Session, in wire.Initialize) (string, error) {
			session = s
			return in.Root, nil
		},
		Execute: func(context.Context, adapterkit.Call) (tool.Result, error) { return tool.Result{}, nil },
		Processes: adapterkit.ProcessHandlers{
			Start: func(_ context.Context, r tool.StartRequest) (tool.Process, error) {
				p := tool.Process{ID: "p-1", OperationID: r.OperationID, Command: r.Command, Status: tool.ProcessRunning}
				session.EmitProcess(tool.ProcessEvent{Type: tool.EventStarted, Process: p})
				go func() {
					<-session.Lifetime().Done() // … and the process is stopped
				}()
				return p, nil
			},
		},
	})
	fmt.Println(err)
	// Output:
	// adapterkit: Processes.Start needs Processes.List and Close: what is started must be listed, and stopped at the end
}

// readOnly lets nothing through that writes.
type readOnly struct{ *adapterkit.Delegated }

// Handle sees every request on its way to the peer.
func (b readOnly) Handle(ctx context.Context, r *adapterkit.Request) (wire.Response, error) {
	switch r.Method {
	case wire.MethodWriteFile, wire.MethodProcessStart:
		return wire.Response{}, tool.Errorf(tool.Denied, "this adapter changes nothing")
	case wire.MethodExecute:
		x, _, err := r.Execute()
		if err != nil {
			return wire.Response{}, err
		}
		if name := x.Call.Name; name != "read_file" && name != "list_files" && name != "grep" && name != "glob" {
			return wire.Response{}, tool.Errorf(tool.Denied, "this adapter only reads, and has no %s", name)
		}
	}
	return b.Delegated.Handle(ctx, r)
}

// An adapter may stand before another worker, here one in a container, and decide
// about what goes through.
func ExampleDelegate() {
	worker, err := adapterkit.Delegate(adapterkit.DelegateOptions{
		Command:       []string{"docker", "exec", "-i", "box", "caisson", "worker"},
		Capabilities:  []string{wire.CapFS},
		Env:           []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
		ShutdownGrace: 20 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = func() error {
		return adapterkit.Run(context.Background(), readOnly{worker}, adapterkit.Options{})
	}
}

// A program that runs may call the tools of the host, until it has ended.
func ExampleProgram_InvokeTool() {
	_ = adapterkit.Handlers{
		RunCode: func(ctx context.Context, p adapterkit.Program) (wire.RunCodeResult, error) {
			result, err := p.InvokeTool(ctx, wire.ToolCall{Name: "read_file", Arguments: `{"path":"go.mod"}`})
			if err != nil {
				return wire.RunCodeResult{Error: err.Error()}, nil // it is the program's failure
			}
			return wire.RunCodeResult{Logs: []string{result.Content[0].Text}}, nil
		},
	}
}
