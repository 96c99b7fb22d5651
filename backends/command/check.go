package command

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
)

// Check looks the program up, starts it, and has it refuse a request before
// initialize, as everything that speaks the protocol does. Nothing is initialized:
// that would make an environment.
func (b *Backend) Check(ctx context.Context, p profile.Profile) (h backends.Health) {
	begun := time.Now()
	defer func() { h.Duration = time.Since(begun) }()
	report := func(name, detail string, err error) bool {
		c := backends.NewCheck(name, err, detail)
		if !c.OK && c.Hint == "" {
			c.Hint = "see the profile's command"
		}
		return h.Add(c)
	}
	path, err := find(p.Command)
	if !report("program", "found "+path, err) {
		return h
	}
	adapter := newHost(b, backends.Binding{Profile: p})
	s, err := adapter.start()
	if err != nil {
		report("start", "", err)
		return h
	}
	report("start", fmt.Sprintf("runs as process %d", s.program.Pid()), nil)
	probe, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	report("protocol", "answers, and refuses what comes before initialize", remote.Probe(probe, adapter.connection(s)))
	report("end", "exits when its input ends", s.Close())
	return h
}
