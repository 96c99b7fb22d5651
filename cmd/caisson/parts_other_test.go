//go:build !linux

package main

func playPart([]string) bool { return false }
