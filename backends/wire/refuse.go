package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Refuse answers the first request on rw with why, whatever it asks for and whoever it
// comes from, and reads no more. A request is awaited as long as rw lets it, and takes
// at most limit bytes, which are held in memory: [MaxRefused] is enough for any
// initialize of ours. Who has not sent one by then, or none that can be answered, is told
// nothing.
func Refuse(rw io.ReadWriter, why error, limit int) error {
	line, err := NewReader(rw).line(limit)
	if err != nil {
		return fmt.Errorf("wire: the request that is refused: %w", err)
	}
	var f rawFrame
	if err := f.parse(line, false); err != nil {
		return fmt.Errorf("wire: the request that is refused: %w", err)
	}
	if len(f.id) == 0 {
		return errors.New("wire: the request that is refused has no id")
	}
	var in Initialize
	// What cannot be read announces nothing.
	detailed := decodeJSON(f.data, &in) == nil && slices.Contains(in.Capabilities, CapErrors)
	return NewWriter(rw).Write(errorFrame(string(f.id), why, detailed), nil)
}
