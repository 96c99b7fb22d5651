package meter

import "errors"

// ErrOutOfFuel ends a run whose fuel is spent.
var ErrOutOfFuel = errors.New("out of fuel")

// DefaultSlice is the fuel that an instance gets at once, unless it needs more for
// one instruction: 0.3 to 2 ms of compiled code on a machine of 2020. So long may
// the host's garbage collector have to wait.
const DefaultSlice = 1 << 20

// Tank is the fuel of one run on the host's side of [ImportRefuel]. It is not safe
// for concurrent use; a run has one thread.
type Tank struct {
	reserve, slice uint64
	dry            bool
}

// NewTank returns a tank with the whole fuel of a run, which is handed to the
// instance by slices; slice 0 means [DefaultSlice]. The slice changes nothing that
// the guest or [Tank.Remaining] could see.
func NewTank(total, slice uint64) *Tank {
	if slice == 0 {
		slice = DefaultSlice
	}
	return &Tank{reserve: total, slice: slice}
}

// Refuel answers one call of [ImportRefuel]: it returns what the instance is to
// hold then. Where the tank does not have what is needed it returns fuel as it was
// and [ErrOutOfFuel]; the host panics with it.
func (t *Tank) Refuel(fuel, need uint64) (uint64, error) {
	if fuel >= need {
		return fuel, nil
	}
	if t.reserve < need-fuel {
		t.dry = true
		return fuel, ErrOutOfFuel
	}
	grant := min(t.reserve, max(t.slice, need-fuel))
	t.reserve -= grant
	return fuel + grant, nil
}

// Spend takes what a host function costs its guest: it returns what the instance
// is to hold then, for the host to write to [ExportFuel], or [ErrOutOfFuel] as
// [Tank.Refuel] does.
func (t *Tank) Spend(fuel, cost uint64) (uint64, error) {
	fuel, err := t.Refuel(fuel, cost)
	if err != nil {
		return fuel, err
	}
	return fuel - cost, nil
}

// Remaining is the fuel of the run that is not spent, given what the instance
// holds ([ExportFuel]).
func (t *Tank) Remaining(fuel uint64) uint64 { return t.reserve + fuel }

// Dry reports whether a call was refused for lack of fuel, which tells this trap
// from all others.
func (t *Tank) Dry() bool { return t.dry }
