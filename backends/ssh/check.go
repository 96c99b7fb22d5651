package ssh

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Check resolves and reaches the machine, looks what it is, puts the worker there
// and has it try whether the workspace's directory can be written and a write that
// must fail fails. It leaves nothing but the worker.
func (b *Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var health backends.Health
	b.check(ctx, p, func(name string, err error, detail string) bool {
		c := backends.NewCheck(name, err, detail)
		if !c.OK && c.Hint == "" {
			c.Hint = "try: ssh with the profile's host, and see what it says"
		}
		return health.Add(c)
	})
	health.Duration = time.Since(begun)
	return health
}

// check goes on for as long as add, told what was tried, says so.
func (b *Backend) check(ctx context.Context, p profile.Profile, add func(name string, err error, detail string) bool) {
	route, err := b.pool.Resolve(ctx, destination(p))
	if err != nil {
		add("route", err, "")
		return
	}
	add("route", nil, route.String())
	begun := time.Now()
	conn, err := b.pool.Dial(ctx, route, nil)
	if !add("connection", err, fmt.Sprintf("reached, its host key is known, and %s is let in, in %s", route.User(), time.Since(begun).Round(time.Millisecond))) {
		return
	}
	defer conn.Close()
	m := machine{conn, route.String()}
	f, err := m.look(ctx)
	if !add("platform", err, f.system) {
		return
	}
	var placed placement
	var reply remote.SiteReply
	err = b.withWorker(ctx, m, route.Key(), p, nil, func(found placement) error {
		placed = found
		var err error
		reply, err = m.site(ctx, answerTimeout, placed.program, remote.SiteRequest{
			Action: remote.SiteProve, Sum: placed.sum, Directory: p.Workspace,
		})
		return err
	})
	detail := placed.program
	if placed.sum != "" {
		detail += ", SHA-256 " + placed.sum
	}
	if !add("worker", err, detail) || reply.Facts == nil {
		return
	}
	tried := reply.Facts
	if !add("workspace", told(tried.Writable.Error, tried.Writable.Hint), p.Workspace+" can be written") {
		return
	}
	if !p.Confined() {
		add("confinement", nil, "not used: the profile lets commands write everywhere")
		return
	}
	add("confinement", told(tried.Confined.Error, tried.Confined.Hint),
		fmt.Sprintf("Landlock ABI %d on Linux %s: a write outside was refused", tried.Landlock, tried.Kernel))
}

// told is an error that the far end has put into words.
func told(text, hint string) error {
	if text == "" {
		return nil
	}
	return tool.Errorf(tool.Unsupported, "%s", text).WithHint("%s", hint)
}
