package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/bus"
)

// hint is one command that shows a part of a job.
type hint struct {
	Shows   string `json:"shows"`
	Command string `json:"command"`
}

func busCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "bus NAME",
		Short:   "Print the nats commands that show this job",
		Example: "  weir bus shop",
		GroupID: "look",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			h, err := c.Head(ctx, args[0])
			if err != nil {
				return err
			}
			hints := []hint{
				{"the head record: everything that was agreed on", "nats kv get " + bus.RegistryBucket + " " + bus.HeadKey(h.Job)},
				{"every record of the job", "nats kv ls " + bus.RegistryBucket + " 'jobs." + h.Job + ".>'"},
				{"what has happened to the job and happens", "nats sub --all '" + bus.EventFilter(h.Job) + "'"},
				{"live processes", "nats kv ls " + bus.LeasesBucket},
				{"what subtasks tell the coordinator", "nats stream subjects " + bus.AckStream + " '" + bus.AckFilter(h.Job) + "'"},
				{"staged epochs and state", "nats stream subjects " + bus.StateStream + " '" + bus.StateLifePrefix(h.Life) + ".>'"},
			}
			if !h.Phase.AtRest() {
				stream := bus.DataStream(h.Job, h.Fence)
				hints = append(hints,
					hint{"rows on the way, by channel", "nats stream subjects " + stream},
					hint{"backlog of each subtask (unprocessed) and work in hand (ack pending)", "nats consumer report " + stream},
				)
			}
			return s.out().show("BusCommands", hints, func(w io.Writer) {
				for _, x := range hints {
					fmt.Fprintf(w, "# %s\n%s\n", x.Shows, x.Command)
				}
			})
		}),
	}
}
