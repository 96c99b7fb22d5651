package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// RunCode plays a program, one statement a line:
//
//	tools            logs the names of its tools
//	log TEXT
//	call NAME ARGS   calls a tool and logs what came of it
//	value JSON
//	media            shows an image
//	fail TEXT
func (e *doubleEnv) RunCode(ctx context.Context, r backends.CodeRequest) (out backends.CodeResult, err error) {
	for line := range strings.Lines(r.Code) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "tools":
			var names []string
			for _, t := range r.Tools {
				names = append(names, t.Name)
			}
			out.Logs = append(out.Logs, strings.Join(names, " "))
		case "log":
			out.Logs = append(out.Logs, rest)
		case "call":
			name, arguments, _ := strings.Cut(rest, " ")
			result, err := r.Invoke(ctx, backends.NestedCall{Name: name, Arguments: json.RawMessage(arguments)})
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			if err != nil {
				out.Logs = append(out.Logs, fmt.Sprintf("%s: %v", tool.KindOf(err), err))
				continue
			}
			for _, p := range result.Content {
				out.Logs = append(out.Logs, p.Text)
			}
		case "value":
			out.Value = json.RawMessage(rest)
		case "media":
			out.Media = append(out.Media, tool.Part{Type: tool.PartImage, Data: "iVBO", MIMEType: "image/png"})
		case "fail":
			out.Error = rest
			return out, nil
		}
	}
	return out, nil
}

var _ backends.CodeRunner = (*doubleEnv)(nil)
