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
	r.printReasons(&b, NotOffered)
	r.printReasons(&b, NotDriven)
	for _, result := range r.Results {
		if result.Verdict == Broken {
			fmt.Fprintf(&b, "\n%s (%s) is broken: %s%s\n", result.Name, result.Section, result.Detail, result.proof())
		}
	}
	for _, left := range r.Left {
		fmt.Fprintf(&b, "\nleft running, and ended now: %s", left)
	}
	fmt.Fprintf(&b, "\n%d kept, %d broken, %d not offered, %d not driven\n", r.Count(Kept), r.Count(Broken), r.Count(NotOffered), r.Count(NotDriven))
	_, err := io.WriteString(w, b.String())
	return err
}

// printReasons says why clauses have a verdict, once for each reason.
func (r Report) printReasons(b *strings.Builder, v Verdict) {
	var reasons []string
	names := make(map[string][]string)
	for _, result := range r.Results {
		if result.Verdict != v {
			continue
		}
		if names[result.Detail] == nil {
			reasons = append(reasons, result.Detail)
		}
		names[result.Detail] = append(names[result.Detail], result.Name)
	}
	for i, reason := range reasons {
		if i == 0 {
			fmt.Fprintf(b, "\n%s:\n", v)
		}
		fmt.Fprintf(b, "  %s: %s\n", strings.Join(names[reason], ", "), reason)
	}
}

// proof is what shows a breach: the frames, and what the adapter said, in lines of
// their own.
func (r Result) proof() string {
	var b strings.Builder
	for _, f := range r.Frames {
		b.WriteString("\n  " + f)
	}
	if said := strings.TrimSpace(r.Stderr); said != "" {
		b.WriteString("\n  stderr:\n    " + strings.ReplaceAll(said, "\n", "\n    "))
	}
	return b.String()
}
