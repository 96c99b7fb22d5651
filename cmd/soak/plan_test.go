//go:build unix

package main

import (
	"reflect"
	"testing"
	"time"
)

// A seed repeats the plan, and another one is another plan.
func TestPlan(t *testing.T) {
	one, again, other := newPlan(7, time.Minute, 50, true), newPlan(7, time.Minute, 50, true), newPlan(8, time.Minute, 50, true)
	if !reflect.DeepEqual(one, again) || one.dice(3, 4).Uint64() != again.dice(3, 4).Uint64() {
		t.Error("a seed gives two plans")
	}
	if reflect.DeepEqual(one.accidents, other.accidents) || one.dice(3, 4).Uint64() == other.dice(3, 4).Uint64() {
		t.Error("two seeds give one plan")
	}
	count := map[string]int{}
	for _, p := range one.profiles {
		count[p]++
	}
	if count[local] == 0 || count[box] == 0 || count[keep] == 0 || count[shared] < 2 {
		t.Errorf("the profiles are %v", count)
	}
	for _, p := range newPlan(7, time.Minute, 50, false).profiles {
		if p != local {
			t.Errorf("without an engine there is a session of %s", p)
		}
	}
	for i, x := range one.accidents {
		if x.at >= time.Minute || i > 0 && x.at < one.accidents[i-1].at {
			t.Errorf("accident %d is at %v", i, x.at)
		}
	}
}
