package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/internal/control"
)

// session is a connection with a client on it.
type session struct {
	*control.Client
	conn *bus.Conn
}

func (s session) Close() { s.conn.Close() }

// open connects and opens the records.
func (s *settings) open(ctx context.Context) (session, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return session{}, err
	}
	wait, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	c, err := control.Open(wait, conn)
	if err != nil {
		conn.Close()
		return session{}, err
	}
	return session{Client: c, conn: conn}, nil
}

// with opens a session around a command.
func (s *settings) with(run func(ctx context.Context, c session, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := s.open(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return run(cmd.Context(), c, args)
	}
}

func jobCommand(s *settings) *cobra.Command {
	c := group("job", "Submit, list and stop jobs", "jobs")
	c.AddCommand(
		submitCommand(s), listCommand(s), getCommand(s),
		cancelCommand(s), drainCommand(s), resumeCommand(s), resnapshotCommand(s), deleteCommand(s),
	)
	return c
}

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

func listCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the jobs",
		Example: "  weir job list\n  weir job list --json",
		Args:    cobra.NoArgs,
		RunE: s.with(func(ctx context.Context, c session, _ []string) error {
			heads, err := c.Jobs(ctx)
			if err != nil {
				return err
			}
			return s.out().show("JobList", heads, func(w io.Writer) {
				row(w, "JOB", "PHASE", "ATTEMPT", "DURABLE", "COMMITTED", "SINCE", "REASON")
				for _, h := range heads {
					var durable uint64
					if h.Durable != nil {
						durable = uint64(h.Durable.Epoch)
					}
					row(w, h.Job, h.Phase, h.Fence, durable, h.Committed, h.Updated.Format(time.RFC3339), h.Reason.Code)
				}
			})
		}),
	}
}

func getCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "get NAME",
		Short:   "Show a job's head record and its spec, secrets left out",
		Example: "  weir job get shop --json",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			h, err := c.Head(ctx, args[0])
			if err != nil {
				return err
			}
			j, err := c.Spec(ctx, h)
			if err != nil {
				return err
			}
			data := described{Head: h, Spec: j.RedactedJSON()}
			return s.out().show("Job", data, func(w io.Writer) {
				fmt.Fprintf(w, "job %s  phase %s  attempt %d  term %d  life %s\n\n%s", h.Job, h.Phase, h.Fence, h.Term, h.Life, j.Redacted())
			})
		}),
	}
}

// described is a job's head record with its spec, secrets left out.
type described struct {
	Head *job.Head       `json:"head"`
	Spec json.RawMessage `json:"spec"`
}

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

func resumeCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "Let a failed job go on from its last durable epoch",
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

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			return s.showAsked(c.Resnapshot(ctx, args[0], args[1:]))
		}),
	}
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

func (s *settings) showAsked(a control.Asked, err error) error {
	if err != nil {
		return err
	}
	return s.out().show("Answer", a, func(w io.Writer) {
		fmt.Fprintf(w, "job %s: %s, durable epoch %d, committed epoch %d\nundo: %s\n", a.Job, a.Phase, a.Durable, a.Committed, a.Undo)
	})
}
