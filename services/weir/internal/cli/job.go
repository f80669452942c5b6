package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/internal/control"
)

func jobCommand(s *settings) *cobra.Command {
	c := group("job", "Submit, change, list and stop jobs", "jobs")
	c.AddCommand(
		submitCommand(s), applyCommand(s), listCommand(s), getCommand(s),
		cancelCommand(s), drainCommand(s), suspendCommand(s), resumeCommand(s), savepointCommand(s), restoreCommand(s), rewindCommand(s), adoptCommand(s),
		resnapshotCommand(s), deleteCommand(s),
	)
	c.AddCommand(eventsCommand(s))
	return c
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

func (s *settings) showAsked(a control.Asked, err error) error {
	if err != nil {
		return err
	}
	return s.out().show("Answer", a, func(w io.Writer) {
		fmt.Fprintf(w, "job %s: %s, durable epoch %d, committed epoch %d\nundo: %s\n", a.Job, a.Phase, a.Durable, a.Committed, a.Undo)
	})
}
