package local

import (
	"context"
	"errors"
	"slices"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// askingPacks is the step of opening a session in which addPacks is.
const askingPacks = "asking the tool packs what they have"

// addPacks has the worker list the tools of the session's packs, so that it is
// known from the beginning which of them stand for a built-in tool. Where there are
// packs there is a worker from the first moment.
func (e *environment) addPacks(ctx context.Context, p backends.Progress) error {
	if len(e.at.Packs) == 0 {
		return nil
	}
	p.Report(askingPacks)
	far, err := e.worker(ctx)
	if err != nil {
		return err
	}
	all, err := far.Tools(ctx)
	if err != nil {
		return err
	}
	e.packs = slices.DeleteFunc(all, func(d tool.Description) bool { return d.Group != tool.GroupPlugins })
	return nil
}

// ofPack reports whether a pack has the tool of the name.
func (e *environment) ofPack(name string) bool {
	return slices.ContainsFunc(e.packs, func(d tool.Description) bool { return d.Name == name })
}

// unmade undoes what Open did of an environment that could not have its packs: the
// worker that it started ends, and what was not there before is removed.
func (e *environment) unmade(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	err := errors.Join(cause, e.Shutdown(ctx))
	if !e.at.Provisioned {
		err = errors.Join(err, e.backend.Remove(ctx, e.at))
	}
	return err
}
