package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/explain"
)

func explainCommand(s *settings) *cobra.Command {
	format := "text"
	forms := []string{"text", "mermaid", "svg"}
	c := &cobra.Command{
		Use:   "explain FILE",
		Short: "Show the plan of a job: stages, subjects, what each hop guarantees, the weakest link",
		Long: "Show what would run, without touching anything. Variables need not be set.\n" +
			"Mermaid and SVG are for pages; SVG stands alone.",
		Example: "  weir explain shop.yaml\n  weir explain shop.yaml --format svg > shop.svg",
		GroupID: "jobs",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: specFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(forms, format) {
				return fault.New(fault.CLIUsage, "--format "+format, "allowed are "+strings.Join(forms, ", "), "command", cmd.CommandPath())
			}
			j, err := readSpec(args[0])
			if err != nil {
				return err
			}
			e, err := explain.New(j)
			if err != nil {
				return err
			}
			draw := map[string]func() string{"text": e.Text, "mermaid": e.Mermaid, "svg": e.SVG}[format]
			return s.out().show("Explanation", e, func(w io.Writer) {
				_, _ = io.WriteString(w, draw()) // the writer keeps its first error for Flush
			})
		},
	}
	c.Flags().StringVar(&format, "format", format, "text, mermaid or svg")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}
