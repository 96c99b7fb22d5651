package process

import "bytes"

// refusals are the words in which programs report what a confined write gets
// from the kernel: EACCES, and EXDEV for a rename or link that Landlock refuses.
// Programs that speak the user's language are not understood.
func refusals() [][]byte {
	return [][]byte{
		[]byte("permission denied"), []byte("eacces"), []byte("permissionerror"), []byte("accessdeniedexception"),
		[]byte("insufficient permission"), // git, of its objects
		[]byte("invalid cross-device link"), []byte("exdev"),
	}
}

// denied guesses whether the mode made a command fail that has failed.
func (p *proc) denied() bool {
	if !p.limited {
		return false
	}
	tail := bytes.ToLower(p.tail())
	for _, word := range refusals() {
		if bytes.Contains(tail, word) {
			return true
		}
	}
	return false
}

// tail is the end of the output.
func (p *proc) tail() []byte {
	var tail []byte
	for _, c := range p.captures {
		tail = append(tail, c.end(deniedTail)...)
	}
	if len(p.captures) > 0 || p.out == nil {
		return tail
	}
	total, _, _ := p.out.state()
	tail = make([]byte, min(total, deniedTail))
	_, n, err := p.out.readAt(tail, total-int64(len(tail)))
	if err != nil {
		return nil // then there is nothing to guess from
	}
	return tail[:n]
}
