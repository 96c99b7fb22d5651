package remote

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// addPacks makes the far end offer the tools of the binding's packs. It takes place
// before anybody else uses the connection, so that no call can reach a built-in
// tool that a pack's stands for. A worker that lives has them already and answers
// as before.
func (e *Environment) addPacks(ctx context.Context, c *connection) error {
	for _, p := range e.b.Packs {
		if err := addPack(ctx, c, p); err != nil {
			return err
		}
	}
	return nil
}

func addPack(ctx context.Context, c *connection, p tool.Pack) error {
	switch {
	case !c.Has(wire.CapPacks) || !c.Has(wire.CapTools):
		return tool.Errorf(tool.Unsupported, "this environment cannot have the tool pack %q: its far end lacks the capability %s", p.Name, wire.CapPacks).
			WithHint("take the profile out of the pack's profiles, or choose another profile")
	case p.SHA256 != "" && !c.Has(wire.CapBulk):
		return tool.Errorf(tool.Unsupported, "the source of the tool pack %q cannot be put into this environment: its far end lacks the capability %s", p.Name, wire.CapBulk)
	}
	what := fmt.Sprintf("adding the tool pack %q", p.Name)
	data := wire.PackAdd{Name: p.Name, Command: p.Command, SHA256: p.SHA256}
	var source []byte
	for {
		reply, err := c.Call(ctx, wire.MethodPacksAdd, data, source)
		if err != nil {
			return about(what, err)
		}
		var added wire.PackAdded
		if err := reply.Decode(&added); err != nil {
			return about(what, err)
		}
		switch {
		case !added.NeedSource && len(added.Tools) > maxTools:
			return foreign(what, "%d tools; at most %d are taken", len(added.Tools), maxTools)
		case !added.NeedSource:
			return nil
		case p.SHA256 == "" || source != nil:
			return foreign(what, "it asks for a source that it should have")
		}
		if source, err = readSource(p); err != nil {
			return err
		}
	}
}

// readSource reads what a pack's source is. The far end checks its hash.
func readSource(p tool.Pack) ([]byte, error) {
	f, err := os.Open(p.Source)
	if err != nil {
		// The environment is there, whatever is missing here.
		return nil, tool.Errorf(tool.ConfigInvalid, "the source of the tool pack %q is gone: %w", p.Name, err).WithPath(p.Source).
			WithHint("put the file back, or open a new session")
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, tool.MaxPackSource+1))
	switch {
	case err != nil:
		return nil, tool.Errorf(tool.Internal, "the source of the tool pack %q cannot be read: %w", p.Name, err).WithPath(p.Source)
	case len(source) == 0 || len(source) > tool.MaxPackSource:
		return nil, tool.Errorf(tool.ConfigInvalid, "the source of the tool pack %q has %d bytes, and must have between 1 and %d", p.Name, len(source), tool.MaxPackSource).
			WithPath(p.Source)
	}
	return source, nil
}
