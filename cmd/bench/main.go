// Command bench prints a table of how fast Caisson is, each row beside its
// floor or the tool that people use today, measured in the same run. Figures
// are medians; ratios are what counts, since machines differ.
//
// Peers that are not installed leave their rows out and are named at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"text/tabwriter"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == pongArg {
		pong()
		return
	}
	caisson := flag.String("caisson", "bin/caisson", "the `program` to measure")
	only := flag.String("only", "", "measure only rows whose name has this `text`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{caisson: *caisson, only: *only}
	err := b.run(ctx)
	b.print()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// bench gathers rows.
type bench struct {
	caisson string
	only    string
	rows    []row
	missing []string
}

// row is one line of the table.
type row struct {
	work   string
	ours   string
	other  string // what it is compared with, and its figure
	ratio  string
	target string
	met    bool
}

// group is rows that share a service.
type group struct {
	name string
	need []string // programs without which it is left out
	run  func(context.Context, *bench) error
}

func (b *bench) run(ctx context.Context) error {
	groups := []group{
		{"program", nil, programRows},
		{"local", []string{"bash"}, localRows},
		{"search", []string{"rg", "go"}, searchRows},
		{"docker", []string{"docker"}, dockerRows},
	}
	for _, g := range groups {
		if missing := b.lacks(g); missing != "" {
			b.missing = append(b.missing, fmt.Sprintf("%s: no %s here", g.name, missing))
			continue
		}
		if err := g.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

func (b *bench) lacks(g group) string {
	for _, program := range g.need {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// wants reports whether a row was asked for.
func (b *bench) wants(work string) bool { return strings.Contains(work, b.only) }

func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	fmt.Fprintf(os.Stderr, "%s: %s\n", r.work, r.ours)
}

// print writes the table.
func (b *bench) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "work\tours\tcompared with\tratio\ttarget\t")
	for _, r := range b.rows {
		verdict := "met"
		if !r.met {
			verdict = "NOT MET"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.work, r.ours, r.other, r.ratio, r.target, verdict)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	for _, m := range b.missing {
		fmt.Println("left out:", m)
	}
}
