package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// client speaks JSON-RPC to a process over its standard streams, and does
// nothing beside: one request at a time, on the calling goroutine, and only
// what is looked at is decoded. So the process is measured and not its client.
type client struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	// lines says that messages are lines; else they are Content-Length frames.
	lines bool
	// notified is told of notifications while something is read.
	notified func(method string, message []byte)

	id      int
	request []byte
	message []byte
}

// dial starts the command.
func dial(command *exec.Cmd) (*client, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return &client{command: command, in: in, out: bufio.NewReaderSize(out, 64<<10), notified: func(string, []byte) {}}, nil
}

// call makes a request and returns the whole message that answers it, which is
// valid until the next one is read.
func (c *client) call(method string, params []byte) ([]byte, error) {
	c.id++
	if err := c.send(strconv.Itoa(c.id), method, params); err != nil {
		return nil, err
	}
	for {
		message, notification, err := c.next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if notification {
			continue
		}
		if bytes.Contains(head(message), []byte(`"error":`)) {
			return nil, fmt.Errorf("%s: %s", method, message)
		}
		return message, nil
	}
}

// send writes a request, or with no id a notification.
func (c *client) send(id, method string, params []byte) error {
	body := append(c.request[:0], `{"jsonrpc":"2.0",`...)
	if id != "" {
		body = append(append(append(body, `"id":`...), id...), ',')
	}
	body = append(append(append(body, `"method":"`...), method...), `","params":`...)
	body = append(append(body, params...), "}\n"...)
	c.request = body
	if !c.lines {
		// The newline is white space of the body.
		body = append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
	}
	_, err := c.in.Write(body)
	return err
}

// next reads one message, and tells notified when it is a notification.
func (c *client) next() (message []byte, notification bool, err error) {
	if message, err = c.read(); err != nil {
		return nil, false, err
	}
	_, rest, notification := bytes.Cut(head(message), []byte(`"method":"`))
	if notification {
		method, _, _ := bytes.Cut(rest, []byte(`"`))
		c.notified(string(method), message)
	}
	return message, notification, nil
}

// head is the part of a message that says what it is.
func head(message []byte) []byte { return message[:min(len(message), 64)] }

func (c *client) read() ([]byte, error) {
	length := -1
	for {
		line, err := c.out.ReadSlice('\n')
		if c.lines {
			c.message = append(c.message[:0], line...)
			for errors.Is(err, bufio.ErrBufferFull) {
				line, err = c.out.ReadSlice('\n')
				c.message = append(c.message, line...)
			}
			return c.message, err
		}
		if err != nil {
			return nil, err
		}
		field := strings.TrimSpace(string(line))
		if field == "" {
			break
		}
		if value, ok := strings.CutPrefix(field, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, errors.New("a frame without Content-Length")
	}
	if cap(c.message) < length {
		c.message = make([]byte, length)
	}
	c.message = c.message[:length]
	_, err := io.ReadFull(c.out, c.message)
	return c.message, err
}

// close ends the process by the end of its input.
func (c *client) close() error {
	return errors.Join(c.in.Close(), c.command.Wait())
}

// params encodes parameters.
func params(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // what this program sends can be encoded
	}
	return raw
}

// environment is this process's with more.
func environment(more ...string) []string { return append(os.Environ(), more...) }
