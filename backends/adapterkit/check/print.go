package check

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the report as a table, and below it what proves each broken clause.
func (r Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "adapter       %s\n", strings.Join(r.Command, " "))
	fmt.Fprintf(&b, "capabilities  %s\n", cmp.Or(strings.Join(r.Capabilities, " "), "none"))
	fmt.Fprintf(&b, "commands      %s\n\n", cmp.Or(r.Mode, "none"))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLAUSE\tSECTION\tVERDICT\tRULE")
	for _, result := range r.Results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Name, result.Section, result.Verdict, result.Says)
	}
	_ = table.Flush() // into memory
	for _, result := range r.Results {
		if result.Verdict != Broken {
			continue
		}
		fmt.Fprintf(&b, "\n%s (%s) is broken: %s\n", result.Name, result.Section, result.Detail)
		for _, f := range result.Frames {
			fmt.Fprintf(&b, "  %s\n", f)
		}
		if said := strings.TrimSpace(result.Stderr); said != "" {
			fmt.Fprintf(&b, "  stderr:\n    %s\n", strings.ReplaceAll(said, "\n", "\n    "))
		}
	}
	for _, left := range r.Left {
		fmt.Fprintf(&b, "\nleft running, and ended now: %s", left)
	}
	fmt.Fprintf(&b, "\n%d kept, %d broken, %d not offered\n", r.Count(Kept), r.Count(Broken), r.Count(NotOffered))
	_, err := io.WriteString(w, b.String())
	return err
}
