package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func TestSharedSocketProof(t *testing.T) {
	for _, test := range []struct {
		name, worker string
		ok           bool
	}{{"the same nonce", "n0nce", true}, {"another nonce", "other", false}} {
		t.Run(test.name, func(t *testing.T) {
			host, worker := net.Pipe()
			defer host.Close()
			defer worker.Close()
			answered := make(chan error, 1)
			go func() { answered <- AnswerSocket(t.Context(), worker, test.worker) }()
			if err := CheckSocket(t.Context(), host, "n0nce"); (err == nil) != test.ok {
				t.Error(err)
			}
			if err := receive(t, answered); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a peer that says nothing", func(t *testing.T) {
		host, worker := net.Pipe()
		defer worker.Close()
		go io.Copy(io.Discard, worker)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := CheckSocket(ctx, host, "n0nce"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
