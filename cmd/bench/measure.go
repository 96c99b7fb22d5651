package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// rounds are how often a thing is measured after a warm-up: cheap ones more
// often, so that the median is steady.
const (
	quickRounds = 10_000 // of microseconds
	rounds      = 400
	slowRounds  = 40
	rareRounds  = 7
	fewRounds   = 3
)

// median runs f n times after a tenth as many warm-ups and returns the median
// of its durations.
func median(ctx context.Context, n int, f func() error) (time.Duration, error) {
	return medianOf(ctx, n, clocked(f))
}

// medianOf is median of what f itself measures.
func medianOf(ctx context.Context, n int, f func() (time.Duration, error)) (time.Duration, error) {
	warm := n/10 + 1
	times := make([]time.Duration, 0, warm+n)
	for range warm + n {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		d, err := f()
		if err != nil {
			return 0, err
		}
		times = append(times, d)
	}
	return middle(times[warm:]), nil
}

// turns is how often ours and the other take turns in one row.
const turns = 20

// comparison is how ours and the other did in turns.
type comparison struct {
	ours, other time.Duration // medians of all rounds
	ratio       float64       // the median of the turns' ratios of ours to the other
}

// versus compares ours and the other, which take turns: whatever else the
// machine does, both get their share of it, and a turn in which it did much is
// one ratio of many. A turn of something short is many rounds, so that each runs
// as warm as in a loop of its own; else the floor would be several times as long,
// and every ratio flattered.
func versus(ctx context.Context, n int, ours, other func() error) (comparison, error) {
	return versusOf(ctx, n, clocked(ours), clocked(other))
}

// clocked measures f.
func clocked(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		start := time.Now()
		err := f()
		return time.Since(start), err
	}
}

// versusOf is versus of what the two themselves measure.
func versusOf(ctx context.Context, n int, ours, other func() (time.Duration, error)) (comparison, error) {
	var all [2][]time.Duration
	var ratios []float64
	turn := max(1, n/turns)
	for done := -turn; done < n; done += turn { // the first one warms up
		var medians [2]time.Duration
		for i, f := range []func() (time.Duration, error){other, ours} {
			times := make([]time.Duration, 0, turn)
			for range turn {
				if err := ctx.Err(); err != nil {
					return comparison{}, err
				}
				d, err := f()
				if err != nil {
					return comparison{}, err
				}
				times = append(times, d)
			}
			if done >= 0 {
				all[i] = append(all[i], times...)
			}
			medians[i] = middle(times)
		}
		if done >= 0 {
			ratios = append(ratios, float64(medians[1])/float64(medians[0]))
		}
	}
	return comparison{middle(all[1]), middle(all[0]), middle(ratios)}, nil
}

// middle sorts the values and returns the median.
func middle[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// atMost is a row in which ours should take at most factor times the other.
func (c comparison) atMost(name string, factor float64) row {
	return row{
		ours: short(c.ours), other: fmt.Sprintf("%s %s", name, short(c.other)),
		ratio: fmt.Sprintf("%.2f ×", c.ratio), target: fmt.Sprintf("≤ %g ×", factor), met: c.ratio <= factor,
	}
}

// atMost is that row for medians that were not taken in turns.
func atMost(ours time.Duration, name string, other time.Duration, factor float64) row {
	return comparison{ours, other, float64(ours) / float64(other)}.atMost(name, factor)
}

// faster is a row in which ours should be at least factor times as fast.
func (c comparison) faster(name string, factor float64) row {
	return row{
		ours: short(c.ours), other: fmt.Sprintf("%s %s", name, short(c.other)),
		ratio: fmt.Sprintf("%.1f × faster", 1/c.ratio), target: fmt.Sprintf("≥ %g ×", factor), met: 1/c.ratio >= factor,
	}
}

// faster is that row for medians that were not taken in turns.
func faster(ours time.Duration, name string, other time.Duration, factor float64) row {
	return comparison{ours, other, float64(ours) / float64(other)}.faster(name, factor)
}

// rates is the row with speeds instead of times, for so many bytes.
func (r row) rates(bytes int64, c comparison, name string) row {
	r.ours, r.other = rate(bytes, c.ours), name+" "+rate(bytes, c.other)
	return r
}

// rate is bytes a second as people read it.
func rate(bytes int64, d time.Duration) string {
	return fmt.Sprintf("%.0f MB/s", float64(bytes)/1e6/d.Seconds())
}

func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(100 * time.Nanosecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}

// pongArg makes this program the other end of the floor.
const pongArg = "-pong"

// pong answers each line with the same line.
func pong() {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if _, err := os.Stdout.Write(line); err != nil {
			return
		}
	}
}

// pipeFloor returns a function that passes a line of size bytes to another Go
// process and back over pipes, and one that ends that process: nothing that
// speaks over stdio can be faster.
func pipeFloor(ctx context.Context, size int) (pass, end func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	child, err := dial(exec.CommandContext(ctx, self, pongArg))
	if err != nil {
		return nil, nil, err
	}
	line := append(bytes.Repeat([]byte{'x'}, size-1), '\n')
	child.lines = true
	return func() error {
		if _, err := child.in.Write(line); err != nil {
			return err
		}
		_, err := child.read()
		return err
	}, child.close, nil
}

// besideFloor compares f with the pipe floor, over several pairs of processes:
// how a pair is placed in memory and caches stays with it.
func besideFloor(ctx context.Context, f func() error) (comparison, error) {
	const pairs = 9
	var ours, floors []time.Duration
	var ratios []float64
	for range pairs {
		pass, end, err := pipeFloor(ctx, smallFile)
		if err != nil {
			return comparison{}, err
		}
		c, err := versus(ctx, quickRounds, f, pass)
		if err = errors.Join(err, end()); err != nil {
			return comparison{}, err
		}
		ours, floors, ratios = append(ours, c.ours), append(floors, c.other), append(ratios, c.ratio)
	}
	return comparison{middle(ours), middle(floors), middle(ratios)}, nil
}

// command returns a function that runs a command of this machine and reads its
// output.
func command(ctx context.Context, name string, args ...string) func() error {
	return func() error {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	}
}
