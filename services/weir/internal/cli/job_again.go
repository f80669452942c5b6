package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func resumeCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "Let a suspended or failed job go on from its last durable epoch",
		Example: "  weir job resume shop",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			return s.showAsked(c.Resume(ctx, args[0]))
		}),
	}
}

func resnapshotCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "resnapshot NAME [TABLE..]",
		Short: "Empty tables at the sinks and copy them again while the log waits; all tables when none is named",
		Long: "Empty tables at the sinks and copy them again while the log waits; all tables when none is named.\n\n" +
			"The remedy when a table at a sink differs, or has changed in a way that the log cannot follow: its columns of today\n" +
			"are taken. The job is taken back to its last epoch for it, and a failed one goes on. Sinks in upsert mode need\n" +
			"allow: [truncate]; in the other modes the truncate and the rows are recorded.",
		Example: "  weir job resnapshot shop public.orders\n  weir job resnapshot shop",
		Args:    cobra.MinimumNArgs(1),

		ValidArgsFunction: s.jobThen(0, tablesOf),
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			return s.showAsked(c.Resnapshot(ctx, args[0], args[1:]))
		}),
	}
}
