package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// Constraints tighten what a session or a call may do. What cannot be applied
// where it stands is an error, never ignored.
type Constraints struct {
	// Timeout bounds one call; 0 means the session's.
	Timeout time.Duration
	// MaxOutputBytes bounds what one command returns; 0 means the session's.
	MaxOutputBytes int64
	// Filesystem is "" or "read_only".
	Filesystem string
	// Scope says which calls the others apply to: "" (all), "tools", "jobs", "all".
	Scope string

	// The members below make something new and stand on session/open and
	// job/run only.

	Network     string
	Memory      int64 // bytes
	CPUs        float64
	CPUTime     time.Duration
	Image       string
	TmpfsNoexec *bool
	Profile     string
}

func (c Constraints) empty() bool { return c == Constraints{} }

// member is one of the editor's constraints.
type member struct {
	name string
	read func(c *Constraints, raw json.RawMessage) error
}

// members lists them. A name that is not here is refused: to ignore it would
// be to run without the limit that somebody asked for.
func members() []member {
	return []member{
		{"timeout", func(c *Constraints, raw json.RawMessage) error { return readDuration(&c.Timeout, raw) }},
		{"cpuTime", func(c *Constraints, raw json.RawMessage) error { return readDuration(&c.CPUTime, raw) }},
		{"maxOutputBytes", func(c *Constraints, raw json.RawMessage) error {
			return readPositive(&c.MaxOutputBytes, raw, "a number of bytes above 0")
		}},
		{"cpus", func(c *Constraints, raw json.RawMessage) error { return readPositive(&c.CPUs, raw, "a number above 0") }},
		{"memory", readMemory},
		{"filesystem", func(c *Constraints, raw json.RawMessage) error { return readWord(&c.Filesystem, raw, "read_only") }},
		{"scope", func(c *Constraints, raw json.RawMessage) error {
			return readWord(&c.Scope, raw, scopeTools, scopeJobs, "all")
		}},
		{"network", func(c *Constraints, raw json.RawMessage) error {
			return readWord(&c.Network, raw, "none", "enabled", "host")
		}},
		{"image", func(c *Constraints, raw json.RawMessage) error { return readText(&c.Image, raw) }},
		{"profile", func(c *Constraints, raw json.RawMessage) error { return readText(&c.Profile, raw) }},
		{"tmpfsNoexec", func(c *Constraints, raw json.RawMessage) error {
			if json.Unmarshal(raw, &c.TmpfsNoexec) != nil {
				return errors.New("must be true or false")
			}
			return nil
		}},
	}
}

// ParseConstraints decodes the editor's constraints object; empty and null mean
// none. Errors are [tool.InvalidParams] with the member's path below prefix.
func ParseConstraints(prefix string, raw json.RawMessage) (Constraints, error) {
	var c Constraints
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return c, nil
	}
	var written map[string]json.RawMessage
	if json.Unmarshal(raw, &written) != nil {
		return c, invalid(prefix, "%s must be an object", prefix)
	}
	known := members()
	for name, v := range written {
		path := prefix + "." + name
		found := false
		for _, m := range known {
			if m.name != name {
				continue
			}
			found = true
			if string(v) == "null" {
				break // as if it were left out
			}
			if err := m.read(&c, v); err != nil {
				return c, invalid(path, "%s %w", path, err)
			}
		}
		if !found {
			err := invalid(path, "unknown constraint %q", name)
			var names []string
			for _, m := range known {
				names = append(names, m.name)
			}
			if near := profile.Nearest(name, names); near != "" {
				return c, err.WithHint("Did you mean %q?", near)
			}
			return c, err
		}
	}
	return c, nil
}

func readDuration(to *time.Duration, raw json.RawMessage) error {
	d, err := profile.ParseDuration(raw)
	if err == nil && d == 0 {
		err = errors.New("must be more than 0")
	}
	*to = d
	return err
}

func readPositive[T int64 | float64](to *T, raw json.RawMessage, what string) error {
	if json.Unmarshal(raw, to) != nil || *to <= 0 {
		return errors.New("must be " + what)
	}
	return nil
}

// readMemory takes bytes or a size such as "512m".
func readMemory(c *Constraints, raw json.RawMessage) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return readPositive(&c.Memory, raw, `a size such as "512m", or bytes`)
	}
	n, err := profile.ParseSize(s)
	if err == nil && n == 0 {
		err = errors.New("must be more than 0")
	}
	c.Memory = n
	return err
}

func readText(to *string, raw json.RawMessage) error {
	if json.Unmarshal(raw, to) != nil || *to == "" {
		return errors.New("must be a string that is not empty")
	}
	return nil
}

func readWord(to *string, raw json.RawMessage, words ...string) error {
	if json.Unmarshal(raw, to) == nil {
		for _, w := range words {
			if *to == w {
				return nil
			}
		}
	}
	return fmt.Errorf("must be one of %q", words)
}

// The scopes.
const (
	scopeTools = "tools"
	scopeJobs  = "jobs"
)

// forSession splits the constraints of a new session: limits that its profiles
// take on, and those that hold for its tool calls or its jobs alone.
func (c Constraints) forSession(prefix string) (both profile.Limits, tools, jobs *store.Limits, err error) {
	switch c.Scope {
	case scopeTools:
		if name := c.making(); name != "" {
			return both, nil, nil, tool.Errorf(tool.Unsupported, "the constraint %s cannot be kept from jobs, which run in the same environment", name).
				WithPath(prefix + "." + name).WithHint("Leave the scope out.")
		}
		return both, c.saved(), nil, nil
	case scopeJobs:
		if c.TmpfsNoexec != nil && !*c.TmpfsNoexec {
			return both, nil, nil, tool.Errorf(tool.Denied, "a constraint can forbid to execute what is in /tmp, and not allow it").WithPath(prefix + ".tmpfsNoexec")
		}
		// The profile is that of the jobs, and the session's own is named beside.
		return both, nil, c.saved(), nil
	}
	if c.CPUTime > 0 {
		return both, nil, nil, tool.Errorf(tool.Unsupported, "cpuTime limits jobs, not tool calls").
			WithPath(prefix + ".cpuTime").WithHint("Write the scope jobs beside it.")
	}
	return profile.Limits{
		Timeout: c.Timeout, MaxOutputBytes: c.MaxOutputBytes, ReadOnly: c.Filesystem != "",
		Network: c.Network, CPUs: c.CPUs, Memory: c.Memory, TmpfsNoexec: c.TmpfsNoexec, Image: c.Image,
	}, nil, nil, nil
}

// ownProfile is the profile that the constraints name for a session itself.
func (c Constraints) ownProfile() string {
	if c.Scope == scopeJobs {
		return ""
	}
	return c.Profile
}

// saved are the constraints as they are kept with a session.
func (c Constraints) saved() *store.Limits {
	return &store.Limits{
		Timeout: c.Timeout, CPUTime: c.CPUTime, MaxOutputBytes: c.MaxOutputBytes, ReadOnly: c.Filesystem != "",
		Network: c.Network, Memory: c.Memory, CPUs: c.CPUs, Image: c.Image,
		TmpfsNoexec: c.TmpfsNoexec != nil && *c.TmpfsNoexec, Profile: c.Profile,
	}
}

// savedLimits are limits as they are kept with a session.
func savedLimits(l profile.Limits) store.Limits {
	return store.Limits{
		Timeout: l.Timeout, MaxOutputBytes: l.MaxOutputBytes, ReadOnly: l.ReadOnly, Network: l.Network, Memory: l.Memory,
		CPUs: l.CPUs, PidsLimit: l.PidsLimit, Image: l.Image, TmpfsNoexec: l.TmpfsNoexec != nil && *l.TmpfsNoexec,
	}
}

// within is a profile within limits that were saved.
func within(p profile.Profile, l store.Limits) (profile.Profile, error) {
	limits := profile.Limits{
		Timeout: l.Timeout, MaxOutputBytes: l.MaxOutputBytes, ReadOnly: l.ReadOnly, Network: l.Network, Memory: l.Memory,
		CPUs: l.CPUs, PidsLimit: l.PidsLimit, Image: l.Image,
	}
	if l.TmpfsNoexec {
		limits.TmpfsNoexec = new(true)
	}
	return p.Constrain(limits)
}

// making is the first constraint that only something new can have; "" when there
// is none.
func (c Constraints) making() string {
	switch {
	case c.Network != "":
		return "network"
	case c.Memory != 0:
		return "memory"
	case c.CPUs != 0:
		return "cpus"
	case c.CPUTime != 0:
		return "cpuTime"
	case c.Image != "":
		return "image"
	case c.TmpfsNoexec != nil:
		return "tmpfsNoexec"
	case c.Profile != "":
		return "profile"
	}
	return ""
}

// forCall refuses what a call in an environment that exists cannot change.
func (c Constraints) forCall(prefix string) error {
	if name := c.making(); name != "" {
		return tool.Errorf(tool.Unsupported, "the constraint %s cannot be put on one call: the environment exists already", name).
			WithPath(prefix + "." + name).WithHint("Put it on session/open.")
	}
	if c.Scope == scopeJobs {
		return tool.Errorf(tool.Unsupported, "constraints of scope jobs cannot be put on a tool call").WithPath(prefix + ".scope")
	}
	return nil
}

// forJob are the constraints of a job under those that its session has for jobs,
// which are a ceiling.
func (c Constraints) forJob(prefix string, ceiling *store.Limits) (Constraints, error) {
	if ceiling == nil {
		return c, nil
	}
	c.Timeout, c.CPUTime = lower(c.Timeout, ceiling.Timeout), lower(c.CPUTime, ceiling.CPUTime)
	c.MaxOutputBytes, c.Memory = lower(c.MaxOutputBytes, ceiling.MaxOutputBytes), lower(c.Memory, ceiling.Memory)
	c.CPUs = lower(c.CPUs, ceiling.CPUs)
	if ceiling.ReadOnly {
		c.Filesystem = "read_only"
	}
	above := func(name, value, limit string) error {
		return tool.Errorf(tool.Denied, "the session's jobs have the %s %s, which a constraint cannot change to %s", name, limit, value).
			WithPath(prefix + "." + name)
	}
	switch {
	case c.Network == "":
		c.Network = ceiling.Network
	case width(c.Network) > width(ceiling.Network) && ceiling.Network != "":
		return c, above("network", c.Network, ceiling.Network)
	}
	switch {
	case c.Image == "":
		c.Image = ceiling.Image
	case ceiling.Image != "" && c.Image != ceiling.Image:
		return c, above("image", c.Image, ceiling.Image)
	}
	switch {
	case c.Profile == "":
		c.Profile = ceiling.Profile
	case ceiling.Profile != "" && c.Profile != ceiling.Profile:
		return c, above("profile", c.Profile, ceiling.Profile)
	}
	if ceiling.TmpfsNoexec {
		if c.TmpfsNoexec != nil && !*c.TmpfsNoexec {
			return c, above("tmpfsNoexec", "false", "true")
		}
		c.TmpfsNoexec = new(true)
	}
	return c, nil
}

// lower is the lower one of two limits, of which 0 is none.
func lower[T time.Duration | int64 | float64](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// width orders the networks.
func width(network string) int {
	switch network {
	case "none":
		return 0
	case "enabled":
		return 1
	default:
		return 2
	}
}

// narrowed is the profile of an environment that the constraints ask for. Memory
// that its backend cannot limit stays a limit of each process.
func (c Constraints) narrowed(p profile.Profile) (profile.Profile, error) {
	l := profile.Limits{Network: c.Network, CPUs: c.CPUs, Image: c.Image, TmpfsNoexec: c.TmpfsNoexec}
	p, err := p.Constrain(l)
	if err != nil || c.Memory == 0 {
		return p, err
	}
	if limited, err := p.Constrain(profile.Limits{Memory: c.Memory}); tool.KindOf(err) != tool.Unsupported {
		return limited, err
	}
	return p, nil
}

// ofProject says of an error about a limit that the project's file set it.
func ofProject(err error) error {
	var e *tool.Error
	if !errors.As(err, &e) {
		return err
	}
	moved := *e
	moved.Message = config.ProjectFile + ": " + e.Message
	switch e.Path { // which names it as editors do
	case "memory":
		moved.Path = "limits.memory_mb"
	case "tmpfsNoexec":
		moved.Path = "limits.tmpfs_noexec"
	default:
		moved.Path = "limits." + e.Path
	}
	moved.Hint = "Choose a profile whose backend can hold the project's limit, or take the limit out of the project's file."
	return &moved
}

// ofSession says of an error about a limit that the session has had from its
// beginning.
func ofSession(err error) error {
	var e *tool.Error
	if !errors.As(err, &e) {
		return err
	}
	moved := *e
	moved.Message = "the session's own limits: " + e.Message
	moved.Path = "constraints.profile"
	moved.Hint = "Choose a profile whose backend can hold what the session was opened with, or open a session without that limit."
	return &moved
}

// under puts the path of err below prefix.
func under(prefix string, err error) error {
	var e *tool.Error
	if errors.As(err, &e) && e.Path != "" {
		moved := *e
		moved.Path = prefix + "." + e.Path
		return &moved
	}
	return err
}
