package wire

import (
	"crypto/subtle"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Token is the secret of a worker's connections: the first initialize that
// succeeds fixes it, every later frame of every connection must carry it. Its
// methods may be called concurrently.
type Token struct {
	required bool

	mu    sync.Mutex
	value []byte // nil until it is fixed
	// fixed says that an initialize succeeded with it. Until then it is held by
	// the initializes that go on with it, so that one that fails does not take
	// away what another one has fixed.
	fixed  bool
	trying int
}

// NewToken makes a token that is not fixed yet. When required, as on a socket,
// initialize is refused without a token of at least [MinToken] characters; else
// a shorter one counts as none.
func NewToken(required bool) *Token { return &Token{required: required} }

var errToken = &tool.Error{Kind: tool.Denied, Message: "the token is missing or not the one of this session"}

// check refuses a frame whose token is not the fixed one.
func (t *Token) check(token []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == nil || subtle.ConstantTimeCompare(t.value, token) == 1 {
		return nil
	}
	return errToken
}

// fix fixes the token of an initialize that is about to be handled, unless it is
// fixed already. settle must be told whether that succeeded: when every one that
// tried has failed, the token is free again.
func (t *Token) fix(token []byte) (settle func(succeeded bool), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.value != nil:
		if subtle.ConstantTimeCompare(t.value, token) == 0 {
			return nil, errToken
		}
	case len(token) >= MinToken:
		t.value = append([]byte(nil), token...)
	case t.required:
		return nil, tool.Errorf(tool.Denied, "a token of at least %d characters is required here", MinToken)
	default:
		return func(bool) {}, nil
	}
	t.trying++
	return t.settle, nil
}

func (t *Token) settle(succeeded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trying--
	t.fixed = t.fixed || succeeded
	if !t.fixed && t.trying == 0 {
		t.value = nil
	}
}
