//go:build !race

package check

const racing = false
