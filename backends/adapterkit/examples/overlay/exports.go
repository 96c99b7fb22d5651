package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// exports are snapshots of files, by token. What is written makes a new content
// and changes no old one, so that a snapshot is the content itself.
type exports struct {
	mu        sync.Mutex
	snapshots map[string][]byte
}

// maxExports is how many snapshots may be open at once.
const maxExports = 64

// present answers present_artifact.
func (x *exports) present(name string, content []byte) tool.Result {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.snapshots) >= maxExports {
		return tool.Failed("too many artifacts are being read at once")
	}
	if x.snapshots == nil {
		x.snapshots = map[string][]byte{}
	}
	token := rand.Text()
	x.snapshots[token] = content
	text, err := json.Marshal(map[string]any{"execution_export": token, "name": name, "size": len(content)})
	if err != nil {
		return tool.Failed(err.Error())
	}
	return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: string(text)}}}
}

func (x *exports) read(_ context.Context, token string, offset int64) (data []byte, eof bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	content, ok := x.snapshots[token]
	if !ok {
		return nil, false, tool.Errorf(tool.ArtifactNotFound, "there is no export of this token")
	}
	if offset < 0 || offset > int64(len(content)) {
		return nil, false, tool.Errorf(tool.InvalidParams, "the offset %d is outside of the export", offset)
	}
	end := min(offset+wire.ExportChunk, int64(len(content)))
	return content[offset:end], end == int64(len(content)), nil
}

func (x *exports) close(_ context.Context, token string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.snapshots, token)
	return nil
}
