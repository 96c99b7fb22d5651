package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Check looks the program up, starts it, and has it refuse a request before
// initialize, as everything that speaks the protocol does. Nothing is initialized:
// that would make an environment.
func (b *Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	begun := time.Now()
	h := backends.Health{OK: true}
	report := func(name, detail string, err error) bool {
		c := backends.Check{Name: name, OK: err == nil, Detail: detail}
		if err != nil {
			h.OK = false
			c.Detail, c.Hint = err.Error(), "see the profile's command"
			var e *tool.Error
			if errors.As(err, &e) && e.Hint != "" {
				c.Hint = e.Hint
			}
		}
		h.Checks = append(h.Checks, c)
		h.Duration = time.Since(begun)
		return err == nil
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
