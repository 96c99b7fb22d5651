// Command guest is a WASI program whose first argument says what it does. It runs
// instrumented and as it is, and must write and return the same.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
)

func main() {
	tasks := map[string]func(){
		"hello": hello, "echo": echo, "json": document, "goroutines": goroutines, "gc": collect, "panic": fails,
		"maps": tables, "sha256": hash, "sort": order, "exit": func() { os.Exit(7) },
		"deadlock": func() { select {} }, "memory": exhaust, "endless": endless,
		"spin": func() { fmt.Println(spin(50_000_000)) }, "sieve": func() { fmt.Println(sieve(5_000_000)) },
		"fib": func() { fmt.Println(fib(32)) },
	}
	task, ok := tasks[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such task")
		os.Exit(2)
	}
	task()
}

func hello() { fmt.Println("hello,", strings.Join(os.Args[2:], " ")) }

func echo() {
	in := bufio.NewScanner(os.Stdin)
	for n := 1; in.Scan(); n++ {
		fmt.Printf("%3d %s\n", n, in.Text())
	}
}

func document() {
	type node struct {
		Name     string             `json:"name"`
		Children []*node            `json:"children,omitempty"`
		Values   map[string]float64 `json:"values"`
	}
	root := &node{Name: "root", Values: map[string]float64{"π": 3.14159, "tiny": 1e-300}}
	for i := range 5 {
		root.Children = append(root.Children, &node{Name: fmt.Sprint("child ", i), Values: map[string]float64{"i": float64(i) / 3}})
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err)
	}
	var back node
	if err := json.Unmarshal(text, &back); err != nil {
		panic(err)
	}
	fmt.Printf("%s\n%d\n", text, len(back.Children))
}

func goroutines() {
	numbers, squares := make(chan int), make(chan int, 4)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for n := range numbers {
				squares <- n * n
			}
		})
	}
	go func() {
		for n := range 100 {
			numbers <- n
		}
		close(numbers)
		workers.Wait()
		close(squares)
	}()
	sum := 0
	for s := range squares {
		sum += s
	}
	fmt.Println(sum)
}

func collect() {
	var kept [][]byte
	total := 0
	for i := range 300 {
		b := make([]byte, 4096)
		b[i] = byte(i)
		total += int(b[i])
		if i%50 == 0 {
			kept = append(kept, b)
			runtime.GC()
		}
	}
	fmt.Println(total, len(kept))
}

func fails() {
	defer func() {
		fmt.Println("recovered:", recover())
		var none map[string]int
		none["x"] = 1
	}()
	var empty []int
	fmt.Println(empty[len(os.Args)])
}

func tables() {
	counts := map[string]int{}
	for i := range 500 {
		counts[fmt.Sprint("k", i*i%97)]++
	}
	for _, k := range slices.Sorted(maps.Keys(counts))[:20] {
		fmt.Println(k, counts[k])
	}
}

func hash() {
	sum := sha256.New()
	for i := range 100 {
		fmt.Fprintf(sum, "line %d\n", i)
	}
	fmt.Printf("%x\n", sum.Sum(nil))
}

func order() {
	words := make([]string, 500)
	state := uint32(1)
	for i := range words {
		state = state*1664525 + 1013904223
		words[i] = fmt.Sprintf("%08x", state)
	}
	sort.Strings(words)
	fmt.Println(words[0], words[250], words[499])
}

func exhaust() {
	var all [][]byte
	for {
		all = append(all, make([]byte, 1<<20))
		all[len(all)-1][0] = 1
	}
}

func endless() {
	for n := 0; ; n++ {
		if n == -1 {
			return
		}
	}
}

//go:noinline
func spin(n int) uint64 {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func sieve(n int) int {
	composite := make([]bool, n+1)
	count := 0
	for i := 2; i <= n; i++ {
		if composite[i] {
			continue
		}
		count++
		for j := i * i; j <= n; j += i {
			composite[j] = true
		}
	}
	return count
}

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}
