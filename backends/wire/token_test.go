package wire

import (
	"strings"
	"testing"
)

// An initialize that fails does not take away the token that another one fixed.
func TestTokenSettles(t *testing.T) {
	ours, theirs := []byte(strings.Repeat("a", MinToken)), []byte(strings.Repeat("b", MinToken))
	token := NewToken(true)
	first, err := token.fix(ours)
	if err != nil {
		t.Fatal(err)
	}
	second, err := token.fix(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := token.fix(theirs); err == nil {
		t.Error("two tokens are tried at once")
	}
	second(true)
	first(false)
	if err := token.check(theirs); err == nil {
		t.Error("another token is taken after one was fixed")
	}
	if err := token.check(ours); err != nil {
		t.Error(err)
	}

	token = NewToken(true)
	failed, err := token.fix(theirs)
	if err != nil {
		t.Fatal(err)
	}
	failed(false)
	if _, err := token.fix(ours); err != nil {
		t.Errorf("after a failure the token is not free: %v", err)
	}
}
