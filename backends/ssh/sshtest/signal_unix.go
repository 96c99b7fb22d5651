//go:build unix

package sshtest

import "syscall"

func kill(pid int) error   { return syscall.Kill(pid, syscall.SIGKILL) }
func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }
func thaw(pid int) error   { return syscall.Kill(pid, syscall.SIGCONT) }
