package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
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

// pipeFloor is how long two Go processes take to pass a line of size bytes to
// and fro over pipes: nothing that speaks over stdio can be faster.
func pipeFloor(ctx context.Context, size int) (d time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.CommandContext(ctx, self, pongArg)
	in, err := child.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	line := make([]byte, size)
	for i := range line {
		line[i] = 'x'
	}
	line[size-1] = '\n'
	back := make([]byte, size)
	d, err = median(ctx, rounds*5, func() error {
		if _, err := in.Write(line); err != nil {
			return err
		}
		_, err := io.ReadFull(out, back)
		return err
	})
	in.Close()
	if werr := child.Wait(); err == nil {
		err = werr
	}
	return d, err
}
