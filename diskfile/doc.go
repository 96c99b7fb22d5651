// Package diskfile has what the rooms that keep files share of them: to open one without
// waiting for what only stands in its place, locks between processes, names that survive a
// crash, and bells. What a file holds, and what an error of one means, is theirs; nothing
// enters here that knows of sessions, artifacts or environments.
package diskfile
