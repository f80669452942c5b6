package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/internal/control"
)

func eventsCommand(s *settings) *cobra.Command {
	var q control.EventQuery
	var since string
	c := &cobra.Command{
		Use:   "events [NAME]",
		Short: "Show what has happened to a job, or to all: state changes, recoveries, alarms, refused zombies",
		Long: "Show what has happened to a job, or to all, oldest first. Events are kept for 7 days, also those of deleted jobs.\n\n" +
			"  state      the job has another phase, or another reason for it\n" +
			"  recovery   an attempt was given up and the next one begins at the last durable epoch\n" +
			"  skipped    an epoch was given up; the next durable one covers it\n" +
			"  savepoint  an epoch is kept under a name, or a kept one was let go\n" +
			"  alarm      several epochs in a row were skipped\n" +
			"  takeover   another coordinator leads; the attempt goes on\n" +
			"  refused    a process of an older attempt spoke and was not listened to\n\n" +
			"With --json each event is one line. They are written behind what they tell, and decide nothing: what holds is in the\n" +
			"head record (`weir job get`).",
		Example: "  weir job events shop\n  weir job events --follow --json\n  weir job events shop --since 2h --limit 20",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			var err error
			if q.Since, err = sinceWhen(since, time.Now()); err != nil {
				return err
			}
			if q.Newest < 0 {
				return fault.New(fault.CLIUsage, "--limit "+strconv.Itoa(q.Newest), "want 0 or more", "command", "weir job events")
			}
			if len(args) == 1 {
				q.Job = args[0]
			}
			return s.showEvents(ctx, c, q)
		}),
	}
	f := c.Flags()
	f.StringVar(&since, "since", "", "leave out what is older: an age (90m, 2h, 3d) or a time (2026-11-30T08:00:00Z)")
	f.IntVarP(&q.Newest, "limit", "n", 0, "of the past only so many, the newest (0: all that are kept)")
	f.BoolVarP(&q.Follow, "follow", "f", false, "go on with what happens from now on")
	completeFlag(c, "since", "15m", "1h", "1d", "7d")
	return c
}

// sinceWhen reads the flag: an age before now, or a time. Empty is the zero time.
func sinceWhen(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fault.New(fault.CLIUsage, "--since "+text,
			"want an age such as 90m, 2h or 3d, or a time such as 2026-11-30T08:00:00Z", "command", "weir job events")
	}
	return at, nil
}

func (s *settings) showEvents(ctx context.Context, c session, q control.EventQuery) error {
	shown := 0
	err := c.Events(ctx, q, func(e control.Event) error {
		shown++
		if e.Err != nil {
			// Somebody else has written there. What is Weir's is shown all the same.
			_, err := fmt.Fprintln(s.std.Err, e.Err)
			return err
		}
		if s.json {
			return eventLine(s.std.Out, e.Notice)
		}
		return eventText(s.std.Out, e.Notice, q.Job == "")
	})
	switch {
	case q.Follow && ctx.Err() != nil:
		return nil //nolint:nilerr // one who follows and is stopped has done what was asked
	case err == nil && shown == 0 && q.Job != "":
		// A job that is gone may have events, one that never was has none.
		_, err = c.Head(ctx, q.Job)
	}
	return err
}

// eventLine prints an event as one line of JSON, in the form of all answers.
func eventLine(w io.Writer, n job.Notice) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(answer{APIVersion: apiVersion, Kind: "Event", Data: n})
}

// eventText prints an event as a line that can be read as it comes: the widths are of what is usual, not of what follows.
func eventText(w io.Writer, n job.Notice, named bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  ", n.At.UTC().Format("2006-01-02T15:04:05.000Z"))
	if named {
		fmt.Fprintf(&b, "%-12s  ", n.Job)
	}
	fmt.Fprintf(&b, "%-8s  %-10s  attempt %d  ", n.Kind, n.Phase, n.Fence)
	if n.Epoch != 0 {
		fmt.Fprintf(&b, "epoch %d  ", n.Epoch)
	}
	b.WriteString(n.Reason.Code)
	if n.Reason.Subtask != nil {
		b.WriteString("  " + n.Reason.Subtask.String())
	}
	if n.Reason.Text != "" {
		b.WriteString("  " + oneLine(n.Reason.Text))
	}
	b.WriteByte('\n')
	if n.Reason.Remedy != "" {
		b.WriteString("    do: " + oneLine(n.Reason.Remedy) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
