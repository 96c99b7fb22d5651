package backends

import "context"

type hurryKey struct{}

// WithHurry is ctx for an attempt to reach an environment that whoever wants the
// environment anew can hurry, by closing the channel.
func WithHurry(ctx context.Context, hurry <-chan struct{}) context.Context {
	return context.WithValue(ctx, hurryKey{}, hurry)
}

// Hurry is closed when an attempt is not to wait any longer for what failures
// before it ask for: a person wants the environment now. It is nil, which never
// is, where nobody can.
func Hurry(ctx context.Context) <-chan struct{} {
	hurry, _ := ctx.Value(hurryKey{}).(<-chan struct{})
	return hurry
}
