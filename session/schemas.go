package session

import (
	"encoding/json"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/plugins"
)

// schemas are compiled when they are needed.
type schemas struct {
	mu       sync.Mutex
	compiled map[string]*plugins.Schema // by their text
}

// maxSchemas is how many are kept: more than a session has tools is a pack that
// answers differently each time.
const maxSchemas = 1024

// check says what is wrong with arguments, as a result for the model; nil for
// nothing.
func (c *schemas) check(d tool.Description, arguments json.RawMessage) (*tool.Result, error) {
	c.mu.Lock()
	s := c.compiled[string(d.InputSchema)]
	c.mu.Unlock()
	if s == nil {
		var err error
		if s, err = plugins.CompileSchema(d.InputSchema); err != nil {
			return nil, tool.Errorf(tool.Unsupported, "the schema of the tool %s %w", d.Name, err)
		}
		c.mu.Lock()
		if c.compiled == nil || len(c.compiled) >= maxSchemas {
			c.compiled = map[string]*plugins.Schema{}
		}
		c.compiled[string(d.InputSchema)] = s
		c.mu.Unlock()
	}
	fault, err := s.Check(arguments)
	if err != nil || fault == nil {
		return nil, err
	}
	refused := plugins.Refuse(d.Name, fault)
	return &refused, nil
}
