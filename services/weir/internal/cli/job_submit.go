package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/services/weir/internal/control"
)

func submitCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "submit FILE",
		Short:   "Start a job; an equal spec that already runs is no change",
		Example: "  weir job submit shop.yaml",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: specFiles,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			j, err := readSpec(args[0])
			if err != nil {
				return err
			}
			sub, err := c.Submit(ctx, j, args[0], false)
			if err != nil {
				return err
			}
			return s.out().show("Submission", sub, func(w io.Writer) { showSubmission(w, sub) })
		}),
	}
}

func showSubmission(w io.Writer, sub control.Submission) {
	if sub.Unchanged {
		fmt.Fprintf(w, "job %s is there with an equal spec: %s\n", sub.Job, sub.Phase)
		return
	}
	fmt.Fprintf(w, "job %s submitted: %s, life %s\nundo: weir job cancel %s --yes\n", sub.Job, sub.Phase, sub.Life, sub.Job)
}

func applyCommand(s *settings) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Change the tables of a running job, or take in those that its patterns match by now",
		Long: "Change the tables of a running job, or take in those that its patterns match by now.\n\n" +
			"The job is taken back to its last epoch and goes on under the new spec. Tables that are new are copied while the log of\n" +
			"the source waits; tables that no longer match are left alone, their rows at the sinks too; a table that comes back is\n" +
			"emptied at the sinks and copied anew, for which sinks in upsert mode need allow: [truncate]. The spec of the job as it\n" +
			"runs is applied as well: its patterns may match tables that were made since. Besides the tables of a source, its\n" +
			"heartbeat and chunk_rows, allow of a sink, epoch and restart may change; anything else is refused.",
		Example: "  weir job apply shop.yaml",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: specFiles,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			j, err := readSpec(args[0])
			if err != nil {
				return err
			}
			wait, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			a, err := c.Apply(wait, j)
			if err != nil {
				return err
			}
			return s.out().show("Application", a, func(w io.Writer) { showApplication(w, a) })
		}),
	}
	c.Flags().DurationVar(&timeout, "timeout", 60*time.Second, "how long an epoch under the spec is waited for; the order stands behind it")
	return c
}

func showApplication(w io.Writer, a control.Application) {
	for _, p := range a.Settings {
		fmt.Fprintf(w, "changed: %s\n", p)
	}
	for _, t := range a.Added {
		fmt.Fprintf(w, "added: %s; it is copied while the log waits\n", t)
	}
	for _, t := range a.Removed {
		fmt.Fprintf(w, "removed: %s; its rows at the sinks stay\n", t)
	}
	switch {
	case !a.Tables:
		fmt.Fprintf(w, "tables: see `weir status %s`\n", a.Job)
	case len(a.Added)+len(a.Removed) == 0:
		fmt.Fprintln(w, "tables: the same as before")
	}
	fmt.Fprintf(w, "job %s: %s, holds from epoch %d on\nundo: %s\n", a.Job, a.Phase, a.Epoch, a.Undo)
}
