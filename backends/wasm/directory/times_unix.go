//go:build unix

package directory

import "golang.org/x/sys/unix"

func times(st *unix.Stat_t) (atim, mtim int64) { return st.Atim.Nano(), st.Mtim.Nano() }
