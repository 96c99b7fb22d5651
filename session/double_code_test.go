package session_test

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// programs is a backend whose environments run programs, and what they were
// asked to run.
type programs struct {
	backends.Backend
	mu    sync.Mutex
	asked []backends.CodeRequest
}

func (p *programs) Open(ctx context.Context, b backends.Binding, progress backends.Progress) (backends.Environment, error) {
	e, err := p.Backend.Open(ctx, b, progress)
	if err != nil {
		return nil, err
	}
	return &codeEnvironment{e.(*doubleEnvironment), p}, nil
}

type codeEnvironment struct {
	*doubleEnvironment
	p *programs
}

// RunCode plays a program: a JSON list of calls, whose results are its logs.
func (e *codeEnvironment) RunCode(ctx context.Context, r backends.CodeRequest) (out backends.CodeResult, err error) {
	e.p.mu.Lock()
	e.p.asked = append(e.p.asked, r)
	e.p.mu.Unlock()
	var calls []backends.NestedCall
	if err := json.Unmarshal([]byte(r.Code), &calls); err != nil {
		return out, err
	}
	for _, c := range calls {
		result, err := r.Invoke(ctx, c)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			out.Logs = append(out.Logs, string(tool.KindOf(err)))
		default:
			for _, p := range result.Content {
				out.Logs = append(out.Logs, p.Text)
			}
			out.Value = result.StructuredContent
		}
	}
	return out, nil
}
