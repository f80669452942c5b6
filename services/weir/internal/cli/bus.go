package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
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
		Long:    "Print the nats commands that show this job. docs/inspect.md explains what they show.",
		Example: "  weir bus shop",
		GroupID: "look",
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
			letters := false
			for _, k := range j.Sinks {
				letters = letters || k.DLQ
			}
			hints := hintsFor(h, letters)
			return s.out().show("BusCommands", hints, func(w io.Writer) {
				for _, x := range hints {
					fmt.Fprintf(w, "# %s\n%s\n", x.Shows, x.Command)
				}
			})
		}),
	}
}

// hintsFor lists the commands for a job, in the order of docs/inspect.md, which has each of them; a test compares.
func hintsFor(h *job.Head, letters bool) []hint {
	registry, head := bus.RegistryBucket, bus.HeadKey(h.Job)
	hints := []hint{
		{"processes that answer, by service", "nats micro ls"},
		{"processes with a lease, and who leads", "nats kv ls " + bus.LeasesBucket},
		{"the head record: everything that was agreed on", "nats kv get " + registry + " " + head + " --raw"},
		{"its last versions", "nats kv history " + registry + " " + head},
		{"every record of the job", "nats kv ls " + registry + " 'jobs." + bus.EscapeToken(h.Job) + ".>'"},
		{"what has happened to the job; without -T also what happens", "nats sub --all -T '" + bus.EventFilter(h.Job) + "'"},
	}
	if !h.Phase.AtRest() {
		stream := bus.DataStream(h.Job, h.Fence)
		hints = append(hints,
			hint{"the stream of this attempt", "nats stream info " + stream},
			hint{"rows on the way, by channel <receiver>.<sender>", "nats stream subjects " + stream + " '" + bus.DataAll(h.Job, h.Fence) + "'"},
			hint{"backlog of each subtask (unprocessed) and work in hand (ack pending)", "nats consumer report " + stream},
		)
	}
	hints = append(hints,
		hint{"what subtasks tell the coordinator", "nats stream subjects " + bus.AckStream + " '" + bus.AckFilter(h.Job) + "'"},
		hint{"staged epochs and state", "nats stream subjects " + bus.StateStream + " '" + bus.StateLifePrefix(h.Life) + ".>'"},
	)
	if letters {
		hints = append(hints, hint{"dead letters, by table", "nats stream subjects " + bus.DLQStream(h.Job)})
	}
	return hints
}
