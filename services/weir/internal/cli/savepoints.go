package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/services/weir/internal/control"
)

func savepointCommand(s *settings) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "savepoint NAME SAVEPOINT",
		Short: "Take an epoch and keep it under a name; the job goes on",
		Long: "Take an epoch and keep it under a name; the job goes on.\n\n" +
			"`weir job restore` goes back to it later. A PostgreSQL source keeps the log for it with a slot of its own, which holds disk\n" +
			"space at the server until the savepoint is deleted; a MySQL source needs the server to keep its binary logs that long.",
		Example: "  weir job savepoint shop before-upgrade",
		Args:    cobra.ExactArgs(2),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return s.showAsked(c.TakeSavepoint(ctx, args[0], args[1]))
		}),
	}
	c.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "stop waiting after this")
	return c
}

func restoreCommand(s *settings) *cobra.Command {
	var r control.Restoration
	var file string
	c := &cobra.Command{
		Use:   "restore NAME SAVEPOINT",
		Short: "Let a suspended or failed job go on from a savepoint",
		Long: "Let a suspended or failed job go on from a savepoint.\n\n" +
			"What the sinks have stays there and the rows since the savepoint come again. In upsert mode that ends where it was; at\n" +
			"sinks in another mode it is refused without --repeat. A file given with --spec may change what `weir job apply` may, such\n" +
			"as readers and writers.",
		Example: "  weir job restore shop before-upgrade\n  weir job restore shop before-upgrade --spec shop.yaml",
		Args:    cobra.ExactArgs(2),

		ValidArgsFunction: s.savepointNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			r.Savepoint = args[1]
			if file != "" {
				j, err := readSpec(file)
				if err != nil {
					return err
				}
				r.Spec = j
			}
			return s.showAsked(c.Restore(ctx, args[0], r))
		}),
	}
	c.Flags().BoolVar(&r.Repeat, "repeat", false, "let sinks that cannot fold two rows into one get rows twice")
	c.Flags().StringVar(&file, "spec", "", "`FILE` with the spec to go on with")
	return c
}

func rewindCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "rewind NAME",
		Short: "Let a job whose staged rows are lost go on from its newest committed epoch",
		Long: "Let a suspended or failed job go on from its newest committed epoch, when what came after it can never be committed because\n" +
			"staged rows were lost. No row is lost or comes twice: the sources are read again from there.",
		Example: "  weir job rewind shop",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			return s.showAsked(c.Restore(ctx, args[0], control.Restoration{}))
		}),
	}
}

func savepointsCommand(s *settings) *cobra.Command {
	c := group("savepoints", "The savepoints of a job: list, delete", "look")
	c.AddCommand(savepointsListCommand(s), savepointsDeleteCommand(s))
	return c
}

func savepointsListCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list NAME",
		Short:   "List the savepoints of a job, oldest first",
		Example: "  weir savepoints list shop",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			all, err := c.Savepoints(ctx, args[0])
			if err != nil {
				return err
			}
			return s.out().show("SavepointList", all, func(w io.Writer) {
				row(w, "SAVEPOINT", "EPOCH", "AT", "SPEC", "POSITIONS")
				for _, p := range all {
					spec := "as now"
					if !p.Current {
						spec = "another"
					}
					var at []string
					for _, id := range slices.Sorted(maps.Keys(p.Positions)) {
						at = append(at, fmt.Sprintf("%s %s", id, p.Positions[id]))
					}
					row(w, p.Name, p.Epoch, p.At.Format(time.RFC3339), spec, strings.Join(at, ", "))
				}
			})
		}),
	}
}

func savepointsDeleteCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME SAVEPOINT",
		Short:   "Let a savepoint go, with what the sources keep for it",
		Example: "  weir savepoints delete shop before-upgrade",
		Args:    cobra.ExactArgs(2),

		ValidArgsFunction: s.savepointNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return s.showAsked(c.DropSavepoint(ctx, args[0], args[1]))
		}),
	}
}

// savepointNames completes NAME SAVEPOINT.
func (s *settings) savepointNames(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return s.jobNames(cmd, args, prefix)
	}
	var names []cobra.Completion
	s.live(cmd, func(ctx context.Context, c session) {
		h, err := c.Head(ctx, args[0])
		if err != nil {
			return
		}
		for _, p := range h.Savepoints {
			if strings.HasPrefix(p.Name, prefix) {
				names = append(names, cobra.CompletionWithDesc(p.Name, "epoch "+p.Durable.Epoch.String()))
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
