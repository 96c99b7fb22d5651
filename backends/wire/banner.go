package wire

import (
	"bytes"
	"errors"
	"fmt"
)

// skipTo drops everything up to and including the mark and its newline. The
// banner before it may be anything, also a line that was not ended.
func (r *Reader) skipTo(mark string) error {
	var head []byte
	for dropped := 0; ; {
		window := r.buf[r.start:r.end]
		if i := bytes.Index(window, []byte(mark)); i >= 0 {
			r.start += i + len(mark)
			r.scanned = r.start
			rest, err := r.line(len("\r\n"))
			if err != nil || len(bytes.TrimSuffix(rest, []byte("\r"))) > 0 {
				return fmt.Errorf("the mark is not followed by the end of its line: %w", orEOL(err))
			}
			return nil
		}
		// Whatever could still be the mark's beginning stays.
		drop := max(0, len(window)-len(mark)+1)
		dropped += drop
		head = appendHead(head, window[:drop])
		r.start += drop
		r.scanned = r.start
		if dropped > MaxNoise {
			return &FrameError{Reason: "the far end printed more than 1 MiB before its mark", Head: head}
		}
		if err := r.fill(MaxBanner); err != nil {
			return printed(appendHead(head, r.buf[r.start:r.end]), err)
		}
	}
}

// appendHead adds to what an error will quote, as far as it has room.
func appendHead(head, more []byte) []byte {
	return append(head, more[:min(len(more), quotedHead-len(head))]...)
}

// printed is err with what a peer had printed when it came.
func printed(head []byte, err error) error {
	if len(head) == 0 {
		return err
	}
	return &FrameError{Reason: "the far end ended its output, which was", Head: head, Err: cutShort(err)}
}

func orEOL(err error) error {
	if err != nil {
		return err
	}
	return errors.New("other text is in its line")
}

// first is next for the first frame of a peer that prints no mark: lines that
// are no frames are dropped.
func (r *Reader) first() (*rawFrame, error) {
	var head []byte
	for left := MaxBanner; ; {
		line, err := r.line(MaxFrame)
		if err != nil {
			return nil, printed(appendHead(head, r.buf[r.start:r.end]), err)
		}
		if r.frame.parse(line, r.bulk) == nil && r.frame.isFrame() {
			r.raw = r.frame.raw
			return &r.frame, nil
		}
		head = appendHead(appendHead(head, line), []byte("\n"))
		if left -= len(line) + 1; left < 0 {
			return nil, &FrameError{Reason: "the far end printed more than 64 KiB before its first frame", Head: head}
		}
	}
}
