package tool

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Errors keep their kinds across process borders only where these are known.
func TestKinds(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Kind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, Kind(text))
		}
		return true
	})
	if !slices.Equal(Kinds(), declared) {
		t.Errorf("the kinds are %q, and declared are %q", Kinds(), declared)
	}
	if Kind("").Valid() || Kind("another").Valid() || !GuestFailed.Valid() {
		t.Error("a kind is taken for what it is not")
	}
}

// late is a context whose deadline has passed, with a cause that says nothing of it.
func late(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), cause)
	t.Cleanup(cancel)
	return ctx
}

func cancelled(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return ctx
}

func TestEndKind(t *testing.T) {
	for name, c := range map[string]struct {
		ctx  context.Context
		want Kind
	}{
		"cancelled":                      {cancelled(t, nil), Cancelled},
		"cancelled, for a cause":         {cancelled(t, errors.New("its owner has left")), Cancelled},
		"cancelled because time is over": {cancelled(t, context.DeadlineExceeded), Timeout},
		"cancelled, for one of ours":     {cancelled(t, Errorf(SessionNotFound, "it is not open")), SessionNotFound},
		"cancelled, for one within":      {cancelled(t, fmt.Errorf("it ends: %w", Errorf(Timeout, "too long"))), Timeout},
		"late":                           {late(t, nil), Timeout},
		"late, for a cause":              {late(t, errors.New("the program's time was over")), Timeout},
		"late, for one of ours":          {late(t, Errorf(Timeout, "the program's time was over")), Timeout},
		"late, and it was cancelled":     {late(t, Errorf(Cancelled, "nobody waits for it")), Cancelled},
	} {
		if got := EndKind(c.ctx); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
