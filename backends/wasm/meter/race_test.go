//go:build race

package meter

// raced says that the race detector is on, which makes an engine's compiler, all
// of it on one thread, twenty times as slow.
const raced = true
