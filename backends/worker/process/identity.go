package process

// identity is what makes a pid one process: the same number with another
// start time, after another boot or in another pid namespace is somebody else.
type identity struct {
	// Start is when the process started, in the system's own unit; 0: unknown.
	Start uint64 `json:"start"`
	// Boot identifies the running kernel and Namespace the pid namespace, as
	// far as the system tells.
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"pid_namespace,omitempty"`
}

// sameSystem reports whether pids mean here what they meant where this was noted.
func (i identity) sameSystem(here identity) bool {
	return i.Boot == here.Boot && i.Namespace == here.Namespace
}

// identify puts the identity of a process that was not reaped into its record. What
// never gets into the registry needs none. p.mu is held.
func (p *proc) identify(r *record) {
	r.Identity = p.m.registry.here
	if !p.reaped {
		r.Identity.Start, _ = startTime(r.PID) // unknown only where nothing tells start times
	}
}

// procInfo is one running process, as far as hunting for leftovers needs it.
type procInfo struct {
	pid, parent, group, session int
	zombie                      bool
	start                       uint64
}

// mark is the variable that every command and what it starts carries.
const mark = "CAISSON_PROCESS"

// family chooses, among all processes, those that match and their descendants.
// Zombies are left out: they are dead.
func family(all []procInfo, match func(procInfo) bool) []procInfo {
	children := make(map[int][]int, len(all))
	for i, p := range all {
		children[p.parent] = append(children[p.parent], i)
	}
	taken := make([]bool, len(all))
	var found []procInfo
	var take func(i int)
	take = func(i int) {
		if taken[i] {
			return
		}
		taken[i] = true
		if !all[i].zombie {
			found = append(found, all[i])
		}
		for _, c := range children[all[i].pid] {
			take(c)
		}
	}
	for i, p := range all {
		if match(p) {
			take(i)
		}
	}
	return found
}
