package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A script is a peer that says exactly what a test wants, line by line.
type script struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func newScript(t *testing.T, conn net.Conn) *script {
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(soon))
	return &script{t, conn, bufio.NewReader(conn)}
}

func (s *script) say(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(s.conn, line+"\n"); err != nil {
			s.t.Fatalf("saying %.100s: %v", line, err)
		}
	}
}

func (s *script) hear() string {
	s.t.Helper()
	line, err := s.r.ReadString('\n')
	if err != nil {
		s.t.Fatalf("hearing: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// hears hears as many lines as there are patterns, in any order, and wants each
// pattern in one of them.
func (s *script) hears(patterns ...string) {
	s.t.Helper()
	lines := make([]string, len(patterns))
	for i := range lines {
		lines[i] = s.hear()
	}
	for _, pattern := range patterns {
		found := false
		for i, line := range lines {
			if regexp.MustCompile(pattern).MatchString(line) {
				found, lines[i] = true, ""
				break
			}
		}
		if !found {
			s.t.Fatalf("%s is in none of %q", pattern, lines)
		}
	}
}

// ends wants the connection to have ended.
func (s *script) ends() {
	s.t.Helper()
	if rest, err := io.ReadAll(s.r); errors.Is(err, os.ErrDeadlineExceeded) || len(rest) > 0 {
		s.t.Fatalf("%q, %v; want the end", rest, err)
	}
}
