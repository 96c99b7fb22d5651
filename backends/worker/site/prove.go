package site

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

// prove makes and removes a directory where environments would be made, and has
// a confined thread try in it what must fail.
func prove(parent string) (wire.SiteReply, error) {
	var facts wire.SiteFacts
	facts.Kernel = strings.TrimSpace(kernel())
	made, err := missing(parent)
	if err == nil {
		err = os.MkdirAll(parent, 0o700)
	}
	if err != nil {
		facts.Writable = text(unusable(parent, err))
		return wire.SiteReply{Facts: &facts}, nil
	}
	dir, err := os.MkdirTemp(parent, ".caisson-check-")
	if err != nil {
		facts.Writable = text(unusable(parent, err))
	} else {
		if facts.Landlock, err = confine.ABI(); err != nil {
			facts.Landlock = 0
		}
		facts.Confined = text(confine.Prove(dir))
		err = os.RemoveAll(dir)
	}
	for _, dir := range made {
		// Only as long as nobody else has begun to use it.
		if rm := os.Remove(dir); rm != nil {
			break
		}
	}
	if err != nil {
		facts.Writable = text(unusable(parent, err))
	}
	return wire.SiteReply{Facts: &facts}, nil
}

// missing are the directories that must be made for dir, the innermost first.
func missing(dir string) ([]string, error) {
	var all []string
	for {
		_, err := os.Stat(dir)
		if err == nil {
			return all, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, dir)
		if filepath.Dir(dir) == dir {
			return all, nil
		}
		dir = filepath.Dir(dir)
	}
}

func text(err error) wire.ErrorText {
	if err == nil {
		return wire.ErrorText{}
	}
	return wire.ErrorText{Error: err.Error(), Hint: tool.HintOf(err)}
}
