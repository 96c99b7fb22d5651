package remote

import "os"

// machine adds nothing to the host's name.
func machine() string { return "" }

// processStart tells only whether the process runs.
func processStart(pid int) (start string, running bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return "", false
	}
	_ = p.Release() // only looked for
	return "", true
}
