package guard

import (
	"fmt"
	"strings"
	"testing"
)

// A path is looked at wherever the links of its line lead, however many these are, and where
// they lead to more places than are followed, a person is asked.
func TestLinks(t *testing.T) {
	var others, chain, nested, all strings.Builder
	for i := range 60 {
		fmt.Fprintf(&others, "ln -s x%d y%d; ", i, i)
	}
	for i := range 15 {
		fmt.Fprintf(&chain, "ln -s %d %d; ", i, i+1)
	}
	for i := range 16 {
		fmt.Fprintf(&nested, "ln -s b a%s; ", strings.Repeat("/a", i))
	}
	for i := range maxLinks {
		fmt.Fprintf(&all, "ln -s x%d y%d; ", i, i)
	}
	for name, c := range map[string]struct{ line, want string }{
		"others":       {others.String() + "ln -s / z; rm -rf z/etc", "D"},
		"chain":        {"ln -s / 0; " + chain.String() + "rm -rf 15/etc", "D"},
		"nested":       {nested.String() + "rm -rf a" + strings.Repeat("/a", 16), "C"},
		"nested, seen": {nested.String() + "rm -rf a" + strings.Repeat("/a", 16) + " /etc", "D"},
		"not these":    {nested.String() + "rm -rf build", "."},
		"not so":       {nested.String() + "rm a" + strings.Repeat("/a", 16), "."}, // without -r
		"more":         {all.String() + "ln -s / z; rm -rf z/etc", "C"},
		"a loop":       {"ln -s a/b a; rm -rf a/b", "C"},
	} {
		if got := lettersOf(t, c.line, "rm -rf /*"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What is beyond the work of one comparison is no yes: a person is asked by rules that
// forbid, and rules that allow do not.
func TestBeyond(t *testing.T) {
	var line strings.Builder
	for i := range 16 {
		fmt.Fprintf(&line, "ln -s b a%s; ", strings.Repeat("/a", i))
	}
	line.WriteString("rm -rf" + strings.Repeat(" a"+strings.Repeat("/a", 16)+"/{1..250}", 100))
	c := shellCall(line.String())
	v := judge(t, deny("rm -rf /*"), c)
	if v.action != Confirm || v.unknown != "with more words and links than are compared" {
		t.Errorf("got %s, %q", v.action, v.unknown)
	}
	p := deny("rm *")
	p.Rules = append([]Rule{{Tools: []string{"*"}, Match: map[string]string{"command": "rm -rf ./**"}, Action: Allow}}, p.Rules...)
	if v := judge(t, p, c); v.action != Deny {
		t.Errorf("got %s", v.action)
	}
	l, err := NewLists([]string{"ln *", "rm -rf ./**"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(c); err == nil {
		t.Error("it is allowed")
	}
}

// All commands, rules and policies have one effort, and none of it goes beyond its limits by
// more than one comparison.
func TestEffort(t *testing.T) {
	var patterns []string
	for i := range 300 {
		patterns = append(patterns, fmt.Sprintf("* ./%d/**/*.pem", i))
	}
	compiled, err := compile(deny(patterns...))
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{call: shellCall("cat" + strings.Repeat(" /x*{1..250}*y", 60) + strings.Repeat("; cat *a*{1..250}", 50))}
	if v := compiled.judge(s); v.action == Allow {
		t.Error("allowed")
	}
	for i := range s.found {
		if e := s.found[i].effort; e != nil && (e != s.found[0].effort || e.compared <= maxCompared) {
			t.Errorf("command %d: %d", i, e.compared)
		}
	}
}
