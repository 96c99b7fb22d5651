//go:build !race

package meter

const raced = false
