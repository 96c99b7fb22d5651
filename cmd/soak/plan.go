//go:build unix

package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is all that the seed decides: what sessions there are, what each does in
// which order, and which accident happens when.
type plan struct {
	seed      uint64
	profiles  []string // by session
	accidents []accident
}

// The profiles of sessions.
const (
	local  = "local"
	box    = "box"    // a container of its own, gone when the session is closed
	keep   = "keep"   // one that is kept
	shared = "shared" // one for all sessions of the profile
)

// accident is something bad that happens at a time of the soak.
type accident struct {
	at      time.Duration
	kind    accidentKind
	session int // whose worker or connection, where it is one's
	slot    int // which service, where it is one's
}

// accidentKind is what happens. The numbers are the index of its name and weight.
type accidentKind int

const (
	workerKilled accidentKind = iota
	connectionCut
	serviceKilled
	serviceEnded
	clientGone
	editorGone
	secondBegins
	secondEnds
)

var accidentKinds = []struct {
	name   string
	weight int
}{
	{"a worker is killed", 10},
	{"a connection is cut", 6},
	{"a service is killed", 3},
	{"a service is asked to end", 1},
	{"a client is gone", 2},
	{"an editor is gone", 1},
	{"a second service begins", 3},
	{"the second service ends", 1},
}

func (k accidentKind) String() string { return accidentKinds[k].name }

// accidentsApart is the mean time between two accidents.
const accidentsApart = 2 * time.Second

// newPlan draws the plan of a soak.
func newPlan(seed uint64, duration time.Duration, sessions int, containers bool) plan {
	p := plan{seed: seed}
	for i := range sessions {
		p.profiles = append(p.profiles, profileOf(i, containers))
	}
	r := p.dice(-1, 0)
	for at := accidentsApart; at < duration; at += time.Duration(r.ExpFloat64() * float64(accidentsApart)) {
		kind := draw(r, accidentKinds, func(i int) int { return accidentKinds[i].weight })
		p.accidents = append(p.accidents, accident{at, accidentKind(kind), r.IntN(sessions), r.IntN(slots)})
	}
	slices.SortStableFunc(p.accidents, func(a, b accident) int { return cmp.Compare(a.at, b.at) })
	return p
}

// profileOf spreads the profiles: of ten sessions two have a container, and one
// in turn a shared or a lasting one.
func profileOf(session int, containers bool) string {
	switch {
	case !containers:
		return local
	case session%10 == 3 || session%10 == 7:
		return box
	case session%20 == 5:
		return shared
	case session%20 == 15:
		return keep
	default:
		return local
	}
}

// dice are the random numbers of one step of one session: the same whatever
// became of the steps before.
func (p plan) dice(session, step int) *rand.Rand {
	return rand.New(rand.NewPCG(p.seed, uint64(session+1)<<32|uint64(step)))
}

// draw picks an index of a list by weight.
func draw[T any](r *rand.Rand, list []T, weight func(int) int) int {
	total := 0
	for i := range list {
		total += weight(i)
	}
	n := r.IntN(total)
	for i := range list {
		if n -= weight(i); n < 0 {
			return i
		}
	}
	return len(list) - 1
}

func (p plan) String() string {
	count := map[string]int{}
	for _, name := range p.profiles {
		count[name]++
	}
	return fmt.Sprintf("%d sessions (%d %s, %d %s, %d %s, %d %s), %d accidents", len(p.profiles),
		count[local], local, count[box], box, count[keep], keep, count[shared], shared, len(p.accidents))
}
