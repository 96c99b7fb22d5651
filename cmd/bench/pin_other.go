//go:build !linux

package main

// onOneProcessor leaves it to the system where things run.
func onOneProcessor(f func() error) error { return f() }
