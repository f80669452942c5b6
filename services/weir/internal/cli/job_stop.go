package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
)

func cancelCommand(s *settings) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "cancel NAME",
		Short:   "Stop a job at once and for good; the source's slot is dropped",
		Example: "  weir job cancel shop --yes",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			if !yes {
				return fault.New(fault.CLINeedsYes, args[0], "cancel ends this life of the job")
			}
			return s.showAsked(c.Cancel(ctx, args[0]))
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	return c
}

func drainCommand(s *settings) *cobra.Command {
	var timeout time.Duration
	var noWait bool
	c := &cobra.Command{
		Use:     "drain NAME",
		Short:   "Deliver what the sources hold now, then finish",
		Example: "  weir job drain shop\n  weir job drain shop --timeout 1h --no-wait",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			return s.showAsked(c.Drain(ctx, args[0], timeout, !noWait))
		}),
	}
	c.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "the job fails with DRAIN_TIMEOUT after this; it can be resumed")
	c.Flags().BoolVar(&noWait, "no-wait", false, "return when the drain has begun")
	return c
}

func suspendCommand(s *settings) *cobra.Command {
	var timeout time.Duration
	var noWait bool
	c := &cobra.Command{
		Use:   "suspend NAME",
		Short: "Take an epoch, then stop; `weir job resume` goes on from there",
		Long: "Take an epoch, then stop; `weir job resume` goes on from there.\n\n" +
			"It does not wait for the sinks: what is durable and not committed yet is committed after the resume. Slots stay, and\n" +
			"keep the source's log for as long as the job is suspended.",
		Example: "  weir job suspend shop",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return s.showAsked(c.Suspend(ctx, args[0], !noWait))
		}),
	}
	c.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "stop waiting after this; the job suspends all the same")
	c.Flags().BoolVar(&noWait, "no-wait", false, "return when the suspension has begun")
	return c
}

func deleteCommand(s *settings) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Stop a job and drop its slot, publication, streams and records; the target keeps its rows",
		Example: "  weir job delete shop --yes",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			if !yes {
				return fault.New(fault.CLINeedsYes, args[0], "delete drops the job's slot, streams and records")
			}
			return s.showAsked(c.Delete(ctx, args[0]))
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	return c
}
