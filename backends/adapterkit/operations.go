package adapterkit

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// operations are the starts of processes that went through this connection:
// whoever announces process.start.v1 has promised that the reply to a start and
// the record in process/list both carry the host's operation id.
type operations struct {
	mu  sync.Mutex
	ids map[string]string // operation id by process id
}

// maxOperations bounds what is remembered. A session that starts more is checked
// for the latest ones only.
const maxOperations = 10_000

// record is what is checked of a process's record.
type record struct {
	ID          string `json:"id"`
	OperationID string `json:"operation_id"`
}

// start has a start handled and checks the reply.
func (o *operations) start(r *wire.Request, handle func() (wire.Response, error)) (wire.Response, error) {
	var asked tool.StartRequest
	if err := r.Decode(&asked); err != nil {
		return wire.Response{}, err
	}
	if asked.OperationID == "" {
		return wire.Response{}, tool.Errorf(tool.InvalidParams, "process/start: the operation id is missing").WithPath("operation_id")
	}
	response, err := handle()
	if err != nil {
		return response, err
	}
	var got record
	if err := recode(response.Data, &got); err != nil {
		return wire.Response{}, breach("the adapter's reply to process/start is no record: %w", err)
	}
	if got.ID == "" || got.OperationID != asked.OperationID {
		return wire.Response{}, breach("the adapter answered the start of the operation %q with the record %q of the operation %q", asked.OperationID, got.ID, got.OperationID)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ids) >= maxOperations {
		clear(o.ids)
	}
	o.ids[got.ID] = got.OperationID
	return response, nil
}

// check checks the records of a list.
func (o *operations) check(response wire.Response) error {
	var list []record
	if err := recode(response.Data, &list); err != nil {
		return breach("the adapter's reply to process/list holds no records: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range list {
		if want, ok := o.ids[r.ID]; ok && r.OperationID != want {
			return breach("the adapter's record of the process %q names the operation %q, and it was started by %q", r.ID, r.OperationID, want)
		}
	}
	return nil
}

// breach is the error of an adapter that does not keep to process.start.v1. What
// it has started runs.
func breach(format string, args ...any) error {
	return &tool.Error{
		Kind: tool.OutcomeUnknown, Message: fmt.Errorf(format, args...).Error(),
		Hint: "list the processes; the adapter breaks process.start.v1",
	}
}

// recode reads v, which will be written as JSON, as a T.
func recode[T any](v any, to *T) error {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return err
		}
	}
	return json.Unmarshal(raw, to)
}
