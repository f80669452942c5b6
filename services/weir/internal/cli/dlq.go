package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink"
	"weir.dev/weir/services/weir/internal/control"
)

func dlqCommand(s *settings) *cobra.Command {
	c := group("dlq", "Rows that a target cannot take: list, show, replay, discard", "jobs")
	c.AddCommand(dlqListCommand(s), dlqShowCommand(s), dlqReplayCommand(s), dlqDiscardCommand(s))
	return c
}

func dlqListCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list NAME",
		Short:   "List the dead letters of a job, oldest first",
		Example: "  weir dlq list shop\n  weir dlq list shop --json",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			all, err := c.Letters(ctx, args[0])
			if err != nil {
				return err
			}
			return s.out().show("LetterList", all, func(w io.Writer) {
				row(w, "ID", "SINK", "TABLE", "EPOCH", "OP", "CODE", "SINCE")
				for _, l := range all {
					entry, _ := fault.Lookup(fault.Code(l.Code))
					row(w, l.ID, l.Sink, l.Table, l.Epoch, l.Op, l.Code+" "+entry.Name, l.At.Format(time.RFC3339))
				}
			})
		}),
	}
}

func dlqShowCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME ID",
		Short:   "Show one dead letter: the row, where it comes from, and why it was put aside",
		Example: "  weir dlq show shop warehouse/public.orders/41.76",
		Args:    cobra.ExactArgs(2),

		ValidArgsFunction: s.jobThen(1, lettersOf),
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			l, err := c.Letter(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return s.out().show("Letter", l, func(w io.Writer) { showLetter(w, l) })
		}),
	}
}

func showLetter(w io.Writer, l pkgsink.Letter) {
	fmt.Fprintf(w, "%s of table %s, set aside by sink %s of job %s (life %s) at %s\n", l.Op, l.Table, l.Sink, l.Job, l.Life, l.At.Format(time.RFC3339))
	fmt.Fprintf(w, "epoch %s, row %d of the table\nkey %s\n", l.Epoch, l.Index, l.Key)
	if l.OldKey != nil {
		fmt.Fprintf(w, "key before %s\n", l.OldKey)
	}
	fmt.Fprintln(w, l.Fault.Text())
	if pretty, err := json.MarshalIndent(l.Change, "", "  "); err == nil {
		fmt.Fprintf(w, "change\n%s\n", pretty)
	}
}

// chosen are the flags of commands that touch letters.
type chosen struct{ all, yes, force bool }

// ids checks that letters are named, or all are meant.
func (k chosen) ids(command string, args []string) ([]string, error) {
	if (len(args) == 1) != k.all {
		return nil, fault.New(fault.CLIUsage, args[0], "name letters, or all of them with --all", "command", command)
	}
	return args[1:], nil
}

func dlqReplayCommand(s *settings) *cobra.Command {
	var k chosen
	c := &cobra.Command{
		Use:   "replay NAME [ID..]",
		Short: "Apply dead letters to their target, once the reason is gone",
		Long: "Apply dead letters to their target, once the reason is gone; oldest first, each in a transaction of its own, and once\n" +
			"however often it is asked for. A letter whose key has had a later change is refused: the newer state stays. The sink's\n" +
			"URL is resolved here.",
		Example: "  weir dlq replay shop warehouse/public.orders/41.76\n  weir dlq replay shop --all",
		Args:    cobra.MinimumNArgs(1),

		ValidArgsFunction: s.jobThen(0, lettersOf),
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			ids, err := k.ids("weir dlq replay", args)
			if err != nil {
				return err
			}
			h, err := c.Head(ctx, args[0])
			if err != nil {
				return err
			}
			j, err := c.Spec(ctx, h)
			if err != nil {
				return err
			}
			return s.showTouched(c.Replay(ctx, args[0], ids, func(ctx context.Context, l pkgsink.Letter) error {
				into, ok := j.Sink(l.Sink)
				if !ok {
					return fault.New(fault.SinkDLQRefused, l.Sink, "the job has no such sink any more", "job", l.Job)
				}
				return sink.Resend(ctx, into, l, config.OS().Resolve, k.force)
			}))
		}),
	}
	c.Flags().BoolVar(&k.all, "all", false, "all letters of the job")
	c.Flags().BoolVar(&k.force, "force", false, "also over a later change of the same key")
	return c
}

func dlqDiscardCommand(s *settings) *cobra.Command {
	var k chosen
	c := &cobra.Command{
		Use:     "discard NAME [ID..]",
		Short:   "Remove dead letters for good; the target never gets their rows",
		Example: "  weir dlq discard shop warehouse/public.orders/41.76 --yes\n  weir dlq discard shop --all --yes",
		Args:    cobra.MinimumNArgs(1),

		ValidArgsFunction: s.jobThen(0, lettersOf),
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			ids, err := k.ids("weir dlq discard", args)
			if err != nil {
				return err
			}
			if !k.yes {
				return fault.New(fault.CLINeedsYes, args[0], "the rows of discarded letters are nowhere else at the target's side")
			}
			return s.showTouched(c.Discard(ctx, args[0], ids))
		}),
	}
	c.Flags().BoolVar(&k.all, "all", false, "all letters of the job")
	c.Flags().BoolVar(&k.yes, "yes", false, "do it without asking")
	return c
}

// showTouched tells what was done; that a letter was kept is an error after it.
func (s *settings) showTouched(t control.Touched, err error) error {
	if err != nil {
		return err
	}
	err = s.out().show("LettersDone", t, func(w io.Writer) {
		for _, id := range t.Done {
			row(w, "done", id)
		}
		for _, l := range t.Kept {
			row(w, "kept", l.ID, l.Fault.Error())
		}
		fmt.Fprintf(w, "%d done, %d kept\n", len(t.Done), len(t.Kept))
	})
	if err == nil && len(t.Kept) > 0 {
		return t.Kept[0].Fault
	}
	return err
}
