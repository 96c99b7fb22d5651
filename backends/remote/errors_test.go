package remote

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// TestErrorsAsShown: what the far end says beside its stream comes with the error of
// a stream that failed, once, and with no other; and what nobody may see with none.
func TestErrorsAsShown(t *testing.T) {
	const said = "; it said: no …"
	check := func(err error, kind tool.Kind, want int) {
		t.Helper()
		wantKind(t, err, kind)
		if strings.Count(err.Error(), said) != want || strings.Contains(err.Error(), "secret") || strings.Contains(tool.HintOf(err), "secret") {
			t.Errorf("%v (%s)", err, tool.HintOf(err))
		}
	}
	mute := func(ctx context.Context, _ *wire.Request) (wire.Response, error) {
		<-ctx.Done()
		return wire.Response{}, ctx.Err()
	}
	refuse := func(context.Context, *wire.Request) (wire.Response, error) {
		return wire.Response{}, tool.Errorf(tool.Denied, "the secret is wrong").WithHint("try another secret")
	}

	for _, initialize := range []func(context.Context, *wire.Request) (wire.Response, error){mute, refuse} {
		f := newFar(ourCaps...)
		f.stderr = "no secret"
		f.on(wire.MethodInitialize, initialize)
		_, err := Open(t.Context(), f, binding(), nil, Options{HandshakeTimeout: 20 * time.Millisecond, OneAttempt: true})
		check(err, tool.KindOf(err), 1)
		f.serves.Wait()
	}

	f := newFar(wire.CapErrors)
	f.stderr = "no secret"
	e := open(t, f, binding(), Options{})
	f.on(wire.MethodExecute, refuse)
	_, err := e.Call(t.Context(), tool.Request{Name: "bash"})
	check(err, tool.Denied, 0)
	f.on(wire.MethodExportRead, refuse)
	export, err := e.Export(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(export)
	check(err, tool.Denied, 0)
	_ = export.Close() // the same

	lose := func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		f.cut()
		return mute(ctx, r)
	}
	f.on(wire.MethodExecute, lose)
	f.on(wire.MethodRunCode, lose)
	events := e.Events().Subscribe()
	defer events.Close()
	_, err = e.Call(t.Context(), tool.Request{Name: "bash"})
	check(err, tool.OutcomeUnknown, 1)
	check(reach(t, events, backends.StateDisconnected).Err, tool.Internal, 1)
	_, err = e.RunCode(t.Context(), backends.CodeRequest{Code: "1"})
	check(err, tool.OutcomeUnknown, 1)
}
