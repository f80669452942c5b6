package cli

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/spec"
)

func schemaCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the job spec, for editors",
		Example: "  weir schema > job.schema.json",
		GroupID: "jobs",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := s.std.Out.Write(spec.Schema())
			return err
		},
	}
}
