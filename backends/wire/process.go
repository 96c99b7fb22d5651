package wire

import (
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
)

// decodeInto decodes JSON into v. Records and events of processes, of which each
// start brings three, are read by hand where they are written as ours are.
func decodeInto(data []byte, v any) error {
	switch v := v.(type) {
	case *tool.Process:
		if p, err := plainProcess(data); err == nil {
			*v = p
			return nil
		}
	case *tool.ProcessEvent:
		if e, err := plainEvent(data); err == nil {
			*v = e
			return nil
		}
	}
	return decodeJSON(data, v)
}

// errNotPlain is JSON that a decoder must look at.
var errNotPlain = errors.New("not written as ours is")

func plainEvent(data []byte) (e tool.ProcessEvent, err error) {
	seen := false
	err = eachMember(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "Type":
			err = plainText(&e.Type, value)
		case "Cause":
			err = plainText(&e.Cause, value)
		case "Process":
			if seen {
				return errNotPlain // a decoder merges them
			}
			seen = true
			e.Process, err = plainProcess(value)
		default:
			err = errNotPlain
		}
		return err
	})
	return e, err
}

func plainProcess(data []byte) (p tool.Process, err error) {
	err = eachMember(data, func(name, value []byte) error {
		switch string(name) {
		case "id":
			return plainText(&p.ID, value)
		case "operation_id":
			return plainText(&p.OperationID, value)
		case "owner_kind":
			return plainText(&p.OwnerKind, value)
		case "owner_id":
			return plainText(&p.OwnerID, value)
		case "root_thread_id":
			return plainText(&p.RootThreadID, value)
		case "lifecycle":
			return plainText(&p.Lifecycle, value)
		case "status":
			return plainText(&p.Status, value)
		case "pid":
			return plainNumber(&p.PID, value)
		case "pgid":
			return plainNumber(&p.PGID, value)
		case "command":
			return plainText(&p.Command, value)
		case "cwd":
			return plainText(&p.CWD, value)
		case "started_at":
			return plainTime(&p.StartedAt, value)
		case "updated_at":
			return plainTime(&p.UpdatedAt, value)
		case "stopped_at":
			return plainTime(&p.StoppedAt, value)
		case "exit_code":
			return plainNumber(&p.ExitCode, value)
		case "sandbox_mode":
			return plainText(&p.SandboxMode, value)
		case "terminal_cause":
			return plainText(&p.TerminalCause, value)
		case "log_base_offset":
			return plainNumber(&p.LogBaseOffset, value)
		case "argv":
			p.Argv = []string{}
			return eachElement(value, func(value []byte) error {
				p.Argv = append(p.Argv, "")
				return plainText(&p.Argv[len(p.Argv)-1], value)
			})
		case "output_closed":
			p.OutputClosed = string(value) == "true"
			return plainIf(p.OutputClosed)
		case "total_bytes":
			return plainNumber(&p.TotalBytes, value)
		case "label":
			return plainText(&p.Label, value)
		default:
			return errNotPlain // it is rare, or not ours
		}
	})
	return p, err
}

func plainIf(ok bool) error {
	if ok {
		return nil
	}
	return errNotPlain
}

func plainText[S ~string](to *S, value []byte) error {
	if value[0] != '"' || !utf8.Valid(value) {
		return errNotPlain
	}
	*to = S(unquote(value))
	return nil
}

func plainNumber[N int | int64](to *N, value []byte) error {
	n, err := strconv.ParseInt(string(value), 10, strconv.IntSize)
	*to = N(n)
	return err
}

func plainTime(to *time.Time, value []byte) error {
	if value[0] != '"' {
		return errNotPlain
	}
	var err error
	*to, err = time.Parse(time.RFC3339, string(unquote(value)))
	return err
}
