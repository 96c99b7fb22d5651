package wire

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// On a shared socket the worker proves first that it is the one that the offer was
// made to: a command could have connected in its place. The host
// sends a challenge, the worker answers with its HMAC under the nonce, which
// therefore never stands on the socket itself. Both are one line of 64
// hexadecimal digits.
const proofLine = 2*sha256.Size + 1

// AnswerSocket is the worker's part of the proof: it reads the host's challenge
// and answers it. Call it once connected and before Serve. It fails
// when ctx ends; conn is then closed.
func AnswerSocket(ctx context.Context, conn io.ReadWriteCloser, nonce string) error {
	return whileOpen(ctx, conn, func() error {
		challenge := make([]byte, proofLine)
		if _, err := io.ReadFull(conn, challenge); err != nil {
			return fmt.Errorf("reading the host's challenge: %w", cutShort(err))
		}
		if _, err := conn.Write(proof(nonce, challenge)); err != nil {
			return fmt.Errorf("answering the host's challenge: %w", err)
		}
		return nil
	})
}

// CheckSocket is the host's part: it fails unless the peer knows the nonce, and
// when ctx ends; conn is then closed.
func CheckSocket(ctx context.Context, conn io.ReadWriteCloser, nonce string) error {
	var random [sha256.Size]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	challenge := append(hex.AppendEncode(nil, random[:]), '\n')
	return whileOpen(ctx, conn, func() error {
		if _, err := conn.Write(challenge); err != nil {
			return fmt.Errorf("sending the challenge: %w", err)
		}
		answer := make([]byte, proofLine)
		if _, err := io.ReadFull(conn, answer); err != nil {
			return fmt.Errorf("reading the proof: %w", cutShort(err))
		}
		if !hmac.Equal(answer, proof(nonce, challenge)) {
			return errors.New("the peer on the shared socket is not the worker")
		}
		return nil
	})
}

func proof(nonce string, challenge []byte) []byte {
	mac := hmac.New(sha256.New, []byte(nonce))
	mac.Write(challenge)
	return append(hex.AppendEncode(nil, mac.Sum(nil)), '\n')
}

// whileOpen runs f, which uses conn, and closes conn when ctx ends before it.
func whileOpen(ctx context.Context, conn io.Closer, f func() error) error {
	var closeErr error
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		closeErr = conn.Close()
	})
	err := f()
	if !stop() {
		<-closed
		return errors.Join(context.Cause(ctx), closeErr)
	}
	return err
}
