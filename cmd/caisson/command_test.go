package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command tells what it is for, how it is used, and what an example
// looks like; every flag says what it does.
func TestHelpIsWhole(t *testing.T) {
	a := &app{in: io.NopCloser(strings.NewReader("")), out: io.Discard, errs: io.Discard}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Short == "" {
			t.Errorf("%s says nothing", c.CommandPath())
		}
		if c.Runnable() && !c.HasSubCommands() && !c.DisableFlagParsing {
			if c.Example == "" {
				t.Errorf("%s has no example", c.CommandPath())
			}
			if c.Args == nil {
				t.Errorf("%s does not check its arguments", c.CommandPath())
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s says nothing", c.CommandPath(), f.Name)
			}
		})
	}
	root := a.rootCommand()
	for _, c := range root.Commands() {
		walk(c)
	}
	for _, line := range strings.Split(root.Example, "\n") {
		words := strings.Fields(line)
		if c, _, err := root.Find(words[1:2]); err != nil || c == root {
			t.Errorf("the example %q names no command", line)
		}
	}
}
