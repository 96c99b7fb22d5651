package meter

import "errors"

// ErrOutOfFuel ends a run whose fuel is spent.
var ErrOutOfFuel = errors.New("out of fuel")

// DefaultSlice is the fuel that an instance gets at once, unless it needs more for
// one instruction: 0.3 to 2 ms of compiled code on a machine of 2020. So long may
// the host's garbage collector have to wait.
const DefaultSlice = 1 << 20

// MaxFuel is the most fuel that a run can have: 146 years at a nanosecond each. Twice as
// much is still a positive number.
const MaxFuel = 1 << 62

// Tank is the fuel of one run on the host's side of [ImportRefuel]. It is not safe
// for concurrent use; a run has one thread.
//
// What the instance holds, and what it needs, are the bits of signed numbers, as an
// engine passes them: an instance may owe a little.
type Tank struct {
	reserve, slice int64
}

// NewTank returns a tank with the whole fuel of a run, at most [MaxFuel], which is
// handed to the instance by slices; slice 0 means [DefaultSlice]. The slice changes
// nothing that the guest or [Tank.Remaining] could see.
func NewTank(total, slice uint64) *Tank {
	if slice == 0 {
		slice = DefaultSlice
	}
	return &Tank{reserve: int64(min(total, MaxFuel)), slice: int64(min(slice, MaxFuel))}
}

// Refuel answers one call of [ImportRefuel]: it returns what the instance is to
// hold then. Where the tank does not have what is needed it returns fuel as it was
// and [ErrOutOfFuel]; the host panics with it.
func (t *Tank) Refuel(fuel, need uint64) (uint64, error) {
	holds, wants := int64(fuel), int64(need)
	if holds >= wants {
		return fuel, nil
	}
	// What an instance owes is less than an instruction costs at most, and both are
	// far below MaxFuel: should they not be, something is wrong, and it ends.
	missing := wants - holds
	if missing <= 0 || missing > t.reserve {
		return fuel, ErrOutOfFuel
	}
	// More than the slice only where more is missing.
	grant := min(t.reserve, max(t.slice, missing))
	t.reserve -= grant
	return uint64(holds + grant), nil
}

// Spend takes what a host function costs its guest: it returns what the instance
// is to hold then, for the host to write to [ExportFuel], or [ErrOutOfFuel] as
// [Tank.Refuel] does.
func (t *Tank) Spend(fuel, cost uint64) (uint64, error) {
	if cost > MaxFuel {
		return fuel, ErrOutOfFuel
	}
	fuel, err := t.Refuel(fuel, cost)
	if err != nil {
		return fuel, err
	}
	return fuel - cost, nil
}

// Remaining is the fuel of the run that is not spent, given what the instance
// holds ([ExportFuel]): 0 where it owes more than there is.
func (t *Tank) Remaining(fuel uint64) uint64 { return uint64(max(0, t.reserve+int64(fuel))) }
