package main

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// onOneProcessor calls f with all of this program, and every process that f
// starts, on one processor, whose number f is told.
func onOneProcessor(f func(processor int) error) (err error) {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return err
	}
	processor := 0
	for !allowed.IsSet(processor) {
		processor++
	}
	one.Set(processor)
	if err := runOn(&one); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runOn(&allowed)) }()
	return f(processor)
}

// runOn puts every thread of this program on the processors. One that is made
// later is where the thread that makes it is.
func runOn(processors *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, processors); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
