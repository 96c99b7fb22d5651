// Command bench prints a table of how fast Caisson is, each row beside its
// floor or the tool that people use today, measured in the same run. Figures
// are medians; ratios are what counts, since machines differ.
//
// A row whose peer is not installed says so. A target that is not met is told in
// the table; the exit code is about measuring only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
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
	b := &bench{caisson: *caisson, only: *only, rows: map[string]row{}, left: map[string]string{}}
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
	rows    map[string]row
	// left says of a group why it has no rows.
	left map[string]string
}

// row is the figures of one line of the table.
type row struct {
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
	work []string // its rows, in the table's order
}

var groups = []group{
	{"program", nil, programRows, []string{startWork, initWork, binaryWork, workerWork}},
	{"local", []string{"bash"}, localRows, []string{
		readWork, largeReadWork, bashWork, processWork,
		unreadWork, slowlyWork, subscribedWork, rushingWork, memoryWork, sessionsWork, manyWork,
	}},
	{"search", []string{"rg", "go"}, searchRows, []string{grepWork}},
	{"wasm", []string{"go"}, wasmRows, []string{wasmWork, wasmAtOnce}},
	{"docker", []string{"docker"}, dockerRows, []string{
		dockerOpenWork, dockerReadWork, dockerSocketWork, dockerStreamWork, dockerEngineWork, dockerBashWork, dockerArtifactWork,
	}},
	{"ssh", []string{"ssh", "ssh-keygen", sshdProgram}, sshRows, []string{sshOpenWork, sshReadWork, sshBashWork}},
	{"codex", []string{codexProgram}, codexRows, []string{codexStartWork, codexReadWork, codexLargeReadWork, codexProcessWork}},
}

// run measures every group, also behind one that failed.
func (b *bench) run(ctx context.Context) error {
	var failed []error
	for _, g := range groups {
		if missing := lacks(g); missing != "" {
			b.left[g.name] = "no " + missing + " here"
			continue
		}
		if !slices.ContainsFunc(g.work, b.wants) {
			continue
		}
		if err := g.run(ctx, b); err != nil {
			b.left[g.name] = "failed"
			failed = append(failed, fmt.Errorf("%s: %w", g.name, err))
		}
	}
	return errors.Join(failed...)
}

func lacks(g group) string {
	for _, program := range g.need {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// wants reports whether a row was asked for.
func (b *bench) wants(work string) bool { return strings.Contains(work, b.only) }

func (b *bench) add(work string, r row) {
	b.rows[work] = r
	fmt.Fprintf(os.Stderr, "%s: %s\n", work, r.ours)
}

// line lays out the table: the same in every run, whatever was measured.
const line = "%-42s  %-18s  %-32s  %-14s  %-11s  %s\n"

// print writes the table. Every row that was asked for is in it.
func (b *bench) print() {
	fmt.Printf(line, "work", "ours", "compared with", "ratio", "target", "")
	for _, g := range groups {
		for _, work := range g.work {
			r, measured := b.rows[work]
			verdict := "met"
			switch {
			case !b.wants(work):
				continue
			case !measured:
				r, verdict = row{"–", "–", "–", "–", false}, "not measured: "+b.left[g.name]
			case r.target == "–":
				verdict = ""
			case !r.met:
				verdict = "NOT MET"
			}
			fmt.Printf(line, work, r.ours, r.other, r.ratio, r.target, verdict)
		}
	}
}
