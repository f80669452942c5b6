package cli

import (
	"context"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
	"weir.dev/weir/services/weir/internal/control"
)

func adoptCommand(s *settings) *cobra.Command {
	var trust bool
	cmd := &cobra.Command{
		Use:   "adopt NAME",
		Short: "Let a job go on from where its sinks are, when they know more than the bus",
		Long: "Let a job go on from where its sinks are, when they know more than the bus.\n\n" +
			"The remedy for LEDGER_AHEAD, when the bus was put back to an older copy, and for LEDGER_FOREIGN, when the bus that had\n" +
			"the job is lost and it was submitted to a new one. The job takes the ledgers' life for its own and goes on from their\n" +
			"positions, through the slot that is still there: no row is lost or comes twice. All sinks have to be at the same place.\n" +
			"URLs of sinks are resolved on this host. A slot that the spec names has to be where the targets are; one that is past them\n" +
			"stops the job with PG_SLOT_MOVED until --trust-slot says that nobody but the job has moved it.",
		Example: "  weir job adopt shop\n  weir job adopt shop --trust-slot",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			return s.showAsked(c.Adopt(ctx, args[0], trust, ledgerOf))
		}),
	}
	cmd.Flags().BoolVar(&trust, "trust-slot", false, "nobody but the job has moved the slots that the spec names")
	return cmd
}

// ledgerOf reads the ledger of a sink with the URL as this host resolves it.
func ledgerOf(ctx context.Context, jobName string, k spec.Sink) (control.LedgerAt, error) {
	l, kept, err := sink.ReadLedger(ctx, jobName, k, config.OS().Resolve)
	return control.LedgerAt{Life: l.Life, Fence: l.Fence, Ref: l.Ref, Positions: l.Positions, None: !kept}, err
}
