//go:build race

package check

// racing says that the race detector is watching, which takes its time.
const racing = true
