// Guest does what its first argument says: it is what tests run.
package main

import (
	"bufio"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Println("no arguments")
		return
	}
	do, ok := map[string]func(args []string) error{
		"echo": echo, "args": arguments, "env": environment, "exit": exit, "loop": loop, "grow": grow,
		"deep": deep, "panic": doPanic, "output": output, "sleep": sleep, "world": world,
		"cat": cat, "write": write, "files": files, "escape": escape, "ls": list, "cwd": cwd,
		"sum": sum, "hold": hold, "special": special, "move": move, "many": many,
	}[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "unknown:", os.Args[1])
		os.Exit(64)
	}
	if err := do(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func echo([]string) error {
	_, err := io.Copy(os.Stdout, os.Stdin)
	return err
}

func arguments(args []string) error {
	fmt.Printf("%q %q\n", os.Args[0], args)
	return nil
}

func environment([]string) error {
	fmt.Println(strings.Join(os.Environ(), "\n"))
	return nil
}

func exit(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "leaving")
	os.Exit(code)
	return nil
}

var sink uint64

func loop([]string) error {
	for {
		sink = sink*6364136223846793005 + 1442695040888963407
	}
}

// sum works for a while and ends.
func sum(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	x := uint64(0)
	for i := range n {
		x = x*31 + uint64(i)
	}
	fmt.Println(x)
	return nil
}

func grow([]string) error {
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		b[0] = 1
		all = append(all, b)
		if len(all) > 1<<20 {
			fmt.Println(len(all))
		}
	}
}

func deep([]string) error {
	fmt.Println(descend(1))
	return nil
}

func descend(n int) int {
	if n == 0 {
		return 0
	}
	return descend(n+1) + 1
}

func doPanic([]string) error { panic("on purpose") }

func output(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	w := bufio.NewWriter(os.Stdout)
	for range n {
		if err := w.WriteByte('x'); err != nil {
			return err
		}
	}
	return w.Flush()
}

func sleep(args []string) error {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(d)
	fmt.Println(time.Since(began) >= d)
	return nil
}

// world prints what differs between runs that are not deterministic.
func world([]string) error {
	var random [16]byte
	if _, err := crand.Read(random[:]); err != nil {
		return err
	}
	fmt.Printf("%x %d %v\n", random, rand.Uint64(), time.Now().UnixNano())
	entries, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	m := map[string]int{}
	for i, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		m[e.Name()] = i
		fmt.Println(e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	for name := range m { // in an order that the seed decides
		fmt.Print(name, " ")
	}
	fmt.Println()
	return nil
}

func cat(args []string) error {
	for _, name := range args {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		os.Stdout.Write(data)
	}
	return nil
}

func write(args []string) error {
	return os.WriteFile(args[0], []byte(args[1]), 0o600)
}

func list(args []string) error {
	entries, err := os.ReadDir(args[0])
	for _, e := range entries {
		fmt.Println(e.Name(), e.Type().String()[:1])
	}
	return err
}

func cwd([]string) error {
	dir, err := os.Getwd()
	fmt.Println(dir)
	return err
}

// hold says that it runs and never ends.
func hold(args []string) error {
	if err := os.WriteFile(args[0], []byte("running"), 0o600); err != nil {
		return err
	}
	return loop(nil)
}

// special opens what is no file.
func special(args []string) error {
	f, err := os.Open(args[0])
	if err == nil {
		f.Close()
		return errors.New("it was opened")
	}
	fmt.Println(err)
	return nil
}

func move(args []string) error {
	err := os.Rename(args[0], args[1])
	fmt.Println(err)
	return nil
}

// many opens more files than it may.
func many(args []string) error {
	for i := range 10000 {
		if _, err := os.Open(args[0]); err != nil {
			fmt.Println(i, err)
			return nil
		}
	}
	return errors.New("there is no limit")
}
