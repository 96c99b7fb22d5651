package rpc

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// readText reads a page of output that ends on a character boundary. When all
// that has come is the beginning of a character, it waits for the rest as long
// as the request allows.
func (r *request) readText(ctx context.Context, p *protocol.ProcessReadParams, read session.ReadProcess) (*protocol.ProcessReadResult, error) {
	if read.MaxBytes > 0 {
		read.MaxBytes = max(read.MaxBytes, utf8.UTFMax) // less may hold no character at all
	}
	deadline := time.Now().Add(read.Wait)
	out, err := r.sessions().ReadProcess(ctx, p.SessionID, p.ProcessID, read)
	if err != nil {
		return nil, err
	}
	for !out.EOF && !out.TimedOut && read.Offset != nil && len(out.Data) > 0 && partial(out.Data) == len(out.Data) {
		left := time.Until(deadline)
		if left <= 0 {
			out.TimedOut = read.Wait > 0
			break
		}
		offset := out.EndOffset
		more, err := r.sessions().ReadProcess(ctx, p.SessionID, p.ProcessID, session.ReadProcess{
			Offset: &offset, MaxBytes: read.MaxBytes, Wait: left,
		})
		if err != nil {
			return nil, err
		}
		more.Data = append(out.Data, more.Data...)
		more.StartOffset, more.Truncated = out.StartOffset, out.Truncated
		out = more
	}
	return textPage(out, read.Offset == nil || out.Truncated), nil
}

// textPage makes text of a piece of output. An unfinished character at its end
// is left for the next page, unless no more will come. If the piece began at an
// arbitrary byte, the rest of a character there is left out too; in a piece
// that was asked for by offset it is an invalid byte like any other.
func textPage(out session.ProcessOutput, arbitrary bool) *protocol.ProcessReadResult {
	data := out.Data
	if arbitrary && out.StartOffset > 0 {
		for n := 0; n < utf8.UTFMax-1 && len(data) > 0 && !utf8.RuneStart(data[0]); n++ {
			data = data[1:]
			out.StartOffset++
		}
	}
	if !out.EOF {
		cut := partial(data)
		data = data[:len(data)-cut]
		out.EndOffset -= int64(cut)
	}
	page := readResult(out)
	page.Encoding = protocol.EncodingUTF8
	page.Lossy = !utf8.Valid(data)
	page.Data = string(data)
	if page.Lossy {
		page.Data = strings.ToValidUTF8(page.Data, string(utf8.RuneError))
	}
	return page
}

// partial is how many bytes at the end of data are the beginning of a character
// that more bytes could finish.
func partial(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		tail := data[len(data)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
