package worker

import (
	"crypto/rand"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends/wire"
)

// newOffer makes the offer of a shared socket, with a fresh nonce.
func newOffer(path string) *wire.SocketOffer {
	return &wire.SocketOffer{Path: filepath.Base(path), Nonce: rand.Text()}
}
