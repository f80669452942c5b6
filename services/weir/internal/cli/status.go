package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/weir/internal/control"
)

func statusCommand(s *settings) *cobra.Command {
	var waitFor string
	var timeout time.Duration
	var watch bool
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "How far a job is, each number with its accuracy, and what keeps it from moving",
		Long: "With --wait-for the command waits until the job is running, caught-up (everything that was in the source when " +
			"the command began is committed at every sink) or finished. Exit code 5 when the time runs out.",
		Example: "  weir status shop\n  weir status shop --wait-for caught-up --timeout 60s",
		GroupID: "look",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			if watch {
				return s.watchStatus(ctx, c, args)
			}
			if len(args) == 0 {
				if waitFor != "" {
					return fault.New(fault.CLIUsage, "--wait-for", "needs the name of a job", "command", "weir status")
				}
				return s.showAll(ctx, c)
			}
			if waitFor != "" {
				wait, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				if err := waitUntil(wait, c, args[0], waitFor); err != nil {
					return err
				}
			}
			return s.showOne(ctx, c, args[0])
		}),
	}
	c.Flags().StringVar(&waitFor, "wait-for", "", "running, caught-up or finished")
	c.Flags().BoolVar(&watch, "watch", false, "show it again each second, until interrupted")
	c.MarkFlagsMutuallyExclusive("watch", "wait-for")
	c.Flags().DurationVar(&timeout, "timeout", 60*time.Second, "longest wait")
	completeFlag(c, "wait-for", "running", "caught-up", "finished")
	return c
}

func (s *settings) showOne(ctx context.Context, c session, name string) error {
	st, err := c.Status(ctx, name)
	if err != nil {
		return err
	}
	return s.out().show("Status", st, func(w io.Writer) { showStatus(w, st) })
}

// watchStatus shows one job or all of them again and again: one answer behind the other, for people and programs alike. What
// draws over itself is weir top.
func (s *settings) watchStatus(ctx context.Context, c session, names []string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	show := s.showAll
	if len(names) > 0 {
		show = func(ctx context.Context, c session) error { return s.showOne(ctx, c, names[0]) }
	}
	for {
		if err := show(ctx, c); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if !s.json {
			fmt.Fprintln(s.std.Out)
		}
	}
}

func (s *settings) showAll(ctx context.Context, c session) error {
	heads, err := c.Jobs(ctx)
	if err != nil {
		return err
	}
	all := make([]control.Status, 0, len(heads))
	for _, h := range heads {
		st, err := c.Status(ctx, h.Job)
		if err != nil {
			return err
		}
		all = append(all, st)
	}
	return s.out().show("StatusList", all, func(w io.Writer) {
		for i, st := range all {
			if i > 0 {
				fmt.Fprintln(w)
			}
			showStatus(w, st)
		}
		if len(all) == 0 {
			fmt.Fprintln(w, "no jobs; `weir job submit FILE` makes one")
		}
	})
}

func waitUntil(ctx context.Context, c session, name, what string) error {
	reached := func(ok func(job.Phase) bool) error {
		_, err := c.Await(ctx, name, func(h *job.Head) (bool, error) {
			switch {
			case h == nil:
				return false, nil
			case ok(h.Phase):
				return true, nil
			case h.Phase.AtRest():
				return false, fault.New(fault.CLIWrongPhase, name, "the job is "+string(h.Phase)+": "+h.Reason.Code+" "+h.Reason.Text, "job", name)
			}
			return false, nil
		})
		return c.Explained(ctx, name, err)
	}
	switch what {
	case "running":
		return reached(job.Phase.Active)
	case "finished":
		return reached(func(p job.Phase) bool { return p == job.Finished })
	case "caught-up":
		return c.CaughtUp(ctx, name)
	}
	return fault.New(fault.CLIUsage, "--wait-for "+what, "want running, caught-up or finished", "command", "weir status")
}

func showStatus(w io.Writer, st control.Status) {
	fmt.Fprintf(w, "job %s  %s  attempt %d  durable epoch %d  committed epoch %d  %s\n", st.Job, st.Phase, st.Fence, st.Epoch.Durable, st.Epoch.Committed,
		st.Guarantee.Effective)
	if st.Guarantee.Why != "" {
		fmt.Fprintf(w, "guarantee: %s for now: %s\n", st.Guarantee.Effective, st.Guarantee.Why)
	}
	if line := epochDelayText(st.Epoch.Delay); line != "" {
		fmt.Fprintln(w, line)
	}
	for i := range st.Sources {
		showSource(w, &st.Sources[i])
	}
	for _, k := range st.Sinks {
		fmt.Fprintf(w, "sink %s (%s, %s)%s\n", k.Name, k.Type, k.Mode, deadText(k.Dead, st.Job))
	}
	for _, line := range st.Why {
		fmt.Fprintln(w, "why: "+line)
	}
	for _, f := range st.Findings {
		if f.Note {
			fmt.Fprintln(w, "note: "+f.Text)
		}
	}
}

func showSource(w io.Writer, src *control.Source) {
	fmt.Fprintf(w, "source %s (%s)  %s%s\n", src.Name, src.Type, lifecycleText(src), healthText(src))
	if r := src.Recovery; r.Epoch > 0 {
		fmt.Fprintf(w, "  restored from epoch %d: %s\n", r.Epoch, r.State)
	}
	if e := src.Enumerator; e != nil && e.Assignment != report.NotApplicable {
		row(w, "  splits", "read "+exact(e.Completed), "at readers "+exact(e.Running), "prepared "+exact(e.PreparedUnsent),
			"tables not cut "+exact(e.TablesNotChunked), "total "+exact(src.Summary.Total))
	}
	for _, r := range src.Readers {
		row(w, "  "+r.Subtask, "rows "+exact(r.Rows), "at "+exact(r.Consumed), "committed "+exact(r.Completed), "head "+headText(r.Head),
			"behind "+behindText(r.Behind), "log kept "+keptText(&r), ageText(r.Age))
		for _, line := range delayLines(&r) {
			fmt.Fprintln(w, "    "+line)
		}
	}
	for _, t := range src.Tables {
		row(w, "    "+t.Name, string(t.Lifecycle), "rows "+exact(t.Rows), rateText(&t), splitsText(t.Splits), t.Note)
	}
}

func lifecycleText(src *control.Source) string {
	if src.Mixed {
		return "its readers differ"
	}
	return string(src.Lifecycle)
}

// healthText is empty while there is nothing to say.
func healthText(src *control.Source) string {
	h := src.Health
	switch {
	case h.State == "" || h.State == report.HealthUnknown || h.State == report.Healthy && h.Reason == "":
		return ""
	case h.State == report.Healthy:
		return "  (" + h.Reason + ")"
	}
	return "  " + string(h.State) + ": " + h.Reason
}

func behindText(b progress.Behind) string {
	text := exact(b.Value)
	if _, ok := b.Value.Get(); ok {
		text += " " + string(b.Unit)
	}
	return text
}

func deadText(n uint64, job string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("  %d dead letters: weir dlq list %s", n, job)
}

// ageText is the age of a report. It is made by the clocks of two hosts, so that less than nothing is not an age.
func ageText(age time.Duration) string {
	age = age.Round(time.Millisecond)
	if age < 0 {
		return "report by a clock that is " + (-age).String() + " ahead of this one"
	}
	return "report " + age.String() + " old"
}

// exact prints a value with a mark of its accuracy: "~" for best effort, a word where there is none.
func exact[T any](v report.Value[T]) string {
	got, ok := v.Get()
	switch {
	case !ok && v.Accuracy() == report.Unsupported:
		return "unsupported"
	case !ok:
		return "unavailable"
	case v.Accuracy() == report.BestEffort:
		return fmt.Sprint("~", got)
	}
	return fmt.Sprint(got)
}

func headText(v report.Value[report.SourceHead]) string {
	if h, ok := v.Get(); ok {
		return h.Position.String()
	}
	return exact(v)
}

// rateText is how fast a table is copied, beside how many of its rows are; empty while it is not.
func rateText(t *progress.Table) string {
	if _, ok := t.Rate.Get(); !ok {
		return ""
	}
	return "copied " + exact(t.Copied) + ", " + exact(t.Rate) + " rows/s"
}

// splitsText is how far the copy of a table is.
func splitsText(p *report.Splits) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("splits %d read, %d being read, %d waiting", p.Completed, p.Running, p.Prepared)
	if !p.Cut {
		text += ", more to be cut"
	}
	return text
}

// keptText is how much log the source keeps for a reader, and for how long.
func keptText(r *progress.Reader) string {
	n, ok := r.RetainedBytes.Get()
	if !ok {
		return exact(r.RetainedBytes)
	}
	text := "~" + config.Bytes(n).Rough()
	if k := r.Retention; k != nil {
		if k.Bytes > 0 {
			text += " of " + config.Bytes(k.Bytes).Rough()
		}
		text += ", " + r.Forecast.Text()
	}
	return text
}
