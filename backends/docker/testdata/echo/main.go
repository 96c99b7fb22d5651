// Echo stands in for the worker's program where a test is about the engine: its
// init waits to be told to end, its attach prints the mark and gives back what
// it reads, and a word on stderr.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	switch os.Args[1] {
	case "init":
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
	case "attach":
		for _, arg := range os.Args[2:] {
			if mark, ok := strings.CutPrefix(arg, "--mark="); ok {
				fmt.Println(mark)
			}
			if arg == "--session=fails" {
				fmt.Fprintln(os.Stderr, "it was told to fail")
				os.Exit(7)
			}
		}
		fmt.Fprintln(os.Stderr, "attached")
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			os.Exit(1)
		}
		fmt.Println("end of input")
	}
}
