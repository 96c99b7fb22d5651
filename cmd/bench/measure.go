package main

import (
	"bufio"
	"bytes"
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
	rounds     = 400
	slowRounds = 40
	rareRounds = 7
	fewRounds  = 3
)

// median runs f n times after a tenth as many warm-ups and returns the median
// of its durations.
func median(ctx context.Context, n int, f func() error) (time.Duration, error) {
	return medianOf(ctx, n, func() (time.Duration, error) {
		start := time.Now()
		err := f()
		return time.Since(start), err
	})
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
	times = times[warm:]
	slices.Sort(times)
	return times[len(times)/2], nil
}

// turns is how often ours and the other take turns in one row.
const turns = 20

// versus is the medians of ours and of the other, which take turns: whatever
// else the machine does, both get their share of it. A turn of something short
// is many rounds, so that each runs as warm as in a loop of its own; else the
// floor would be several times as long, and every ratio flattered.
func versus(ctx context.Context, n int, ours, other func() error) (d, otherD time.Duration, err error) {
	var times [2][]time.Duration
	turn := max(1, n/turns)
	for done := -turn; done < n; done += turn { // the first one warms up
		for i, f := range []func() error{other, ours} {
			for range turn {
				if err := ctx.Err(); err != nil {
					return 0, 0, err
				}
				start := time.Now()
				if err := f(); err != nil {
					return 0, 0, err
				}
				if done >= 0 {
					times[i] = append(times[i], time.Since(start))
				}
			}
		}
	}
	for _, t := range times {
		slices.Sort(t)
	}
	return times[1][len(times[1])/2], times[0][len(times[0])/2], nil
}

// atMost is a row in which ours should take at most factor times the other.
func atMost(ours time.Duration, name string, other time.Duration, factor float64) row {
	ratio := float64(ours) / float64(other)
	return row{
		ours: short(ours), other: fmt.Sprintf("%s %s", name, short(other)),
		ratio: fmt.Sprintf("%.2f ×", ratio), target: fmt.Sprintf("≤ %g ×", factor), met: ratio <= factor,
	}
}

// faster is a row in which ours should be at least factor times as fast.
func faster(ours time.Duration, name string, other time.Duration, factor float64) row {
	ratio := float64(other) / float64(ours)
	return row{
		ours: short(ours), other: fmt.Sprintf("%s %s", name, short(other)),
		ratio: fmt.Sprintf("%.1f × faster", ratio), target: fmt.Sprintf("≥ %g ×", factor), met: ratio >= factor,
	}
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

// besideFloor is the median of f, and the pipe floor. Where the kernel puts two
// processes makes the floor up to six times as long, for as long as they live:
// it is the shortest of several pairs.
func besideFloor(ctx context.Context, f func() error) (d, floor time.Duration, err error) {
	const pairs = 9
	var times, floors []time.Duration
	for range pairs {
		pass, end, err := pipeFloor(ctx, smallFile)
		if err != nil {
			return 0, 0, err
		}
		d, floor, err := versus(ctx, rounds, f, pass)
		if err = errors.Join(err, end()); err != nil {
			return 0, 0, err
		}
		times, floors = append(times, d), append(floors, floor)
	}
	slices.Sort(times)
	return times[pairs/2], slices.Min(floors), nil
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
