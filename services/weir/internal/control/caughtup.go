package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// CaughtUp waits until every source is INCREMENTAL with all its tables copied, those too that are copied beside the log, and
// everything up to its head, as it was at some moment behind the call, is in an epoch that every sink has committed. That moment is
// told by no clock: when the tables are copied the call asks for an epoch, and a head counts that a reader asked for when the barrier
// of that epoch had passed it. A job at rest that can never catch up is an error.
func (c *Client) CaughtUp(ctx context.Context, name string) error {
	return c.Explained(ctx, name, c.caughtUp(ctx, name))
}

// explainTime is how long an explanation of a wait that ran out may take.
const explainTime = 3 * time.Second

// Explained adds to the error of a wait that ran out what keeps the job from moving.
func (c *Client) Explained(ctx context.Context, name string, err error) error {
	ranOut := err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	why := "the time ran out"
	if fault.CodeOf(err) == fault.CLIWaitTimeout {
		ranOut, why = true, fault.Of(err).Why
	}
	if !ranOut {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTime)
	defer cancel()
	if s, readErr := c.Status(ctx, name); readErr == nil && len(s.Why) > 0 {
		why += "; " + strings.Join(s.Why, "; ")
	}
	return fault.Wrap(err, fault.CLIWaitTimeout, name, why, "job", name)
}

func (c *Client) caughtUp(ctx context.Context, name string) error {
	goal, least, err := c.heads(ctx, name)
	if err != nil {
		return err
	}
	var seen epoch.ID
	_, err = c.Await(ctx, name, func(h *job.Head) (bool, error) {
		switch {
		case h == nil:
			return false, nil
		case h.Phase == job.Finished:
			return true, nil
		case h.Phase.AtRest():
			return false, reasonFault(h)
		case h.Committed == seen:
			return false, nil
		}
		// Positions alone do not say that the rows of a copy are committed, which moves none; and a log that was made anew may
		// begin below that of the epochs from before.
		seen = h.Committed
		if h.Committed >= least && c.covered(ctx, h, goal) {
			return true, nil
		}
		// The reader was not there yet. Without input the next epoch would wait for the idle interval.
		_, err := c.epoch(ctx, name)
		return false, err
	})
	return err
}

// epoch asks for one epoch now; the sequence numbers what was asked for.
func (c *Client) epoch(ctx context.Context, name string) (sequence uint64, err error) {
	id := request()
	i, err := c.reg.Ask(ctx, name, func(i job.Intent) (job.Intent, error) { return i.Epoch(id, time.Now()), nil })
	if err != nil {
		return 0, fmt.Errorf("ask for an epoch of %s: %w", name, err)
	}
	return i.EpochSeq, nil
}

// goal is where readers have to come, by the subtask.
type goal map[plan.SubtaskID]position.Position

// heads waits until every reader has told where the head of its source was behind the call, and returns the epoch behind whose
// barrier that was. A reader whose source has no head to observe has no goal: it is caught up when the job is.
func (c *Client) heads(ctx context.Context, name string) (goal, epoch.ID, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	s := search{c: c, name: name}
	for {
		found, why, err := s.look(ctx)
		if found != nil || err != nil {
			return found, s.epoch, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, waited(ctx, name, why)
		case <-tick.C:
		}
	}
}

// search is for heads that are newer than the call.
type search struct {
	c    *Client
	name string
	// sequence is that of the epoch that was asked for last, at a moment; zero before.
	sequence uint64
	at       time.Time
	// epoch has begun behind the call; zero until that is known.
	epoch epoch.ID
}

// askAgain is when an epoch that was asked for and has not come to all readers is asked for once more: it may have been given up.
const askAgain = 5 * time.Second

// look returns the goal when it is known, and else what is missing.
func (s *search) look(ctx context.Context) (found goal, why string, err error) {
	o, err := s.c.observe(ctx, s.name)
	if err != nil {
		return nil, "", err
	}
	h := o.Head
	switch {
	case h.Phase == job.Finished:
		return goal{}, "", nil
	case h.Phase.AtRest():
		return nil, "", reasonFault(h)
	case !h.Phase.Active():
		return nil, fmt.Sprintf("the job is %s (%s %s)", h.Phase, h.Reason.Code, h.Reason.Text), nil
	}
	st := progress.Build(o)
	if why := copying(&st); why != "" {
		s.sequence, s.epoch = 0, 0
		return nil, why, nil
	}
	switch {
	case s.sequence == 0 || time.Since(s.at) > askAgain:
		s.at = time.Now()
		s.sequence, err = s.c.epoch(ctx, s.name)
		return nil, "no epoch has begun", err
	case s.epoch == 0 && h.Handled.EpochSeq >= s.sequence:
		s.epoch = h.Newest()
	}
	if s.epoch == 0 {
		return nil, "no epoch has begun", nil
	}
	found = make(goal)
	for i := range st.Sources {
		if why := s.source(&st.Sources[i], found); why != "" {
			return nil, why, nil
		}
	}
	return found, "", nil
}

// copying names a table whose rows are still being copied, or an enumerator that has not told yet; empty when there is none.
func copying(st *Status) (why string) {
	for i := range st.Sources {
		src := &st.Sources[i]
		if src.Enumerator == nil {
			return "source " + src.Name + " has not told what is copied"
		}
		for j := range src.Tables {
			if t := &src.Tables[j]; t.Lifecycle == report.Snapshot {
				return fmt.Sprintf("table %s of source %s is copied", t.Name, src.Name)
			}
		}
	}
	return ""
}

// source adds the heads of a source to a goal, or says what is missing.
func (s *search) source(src *Source, to goal) (why string) {
	if src.Lifecycle != report.Incremental {
		return fmt.Sprintf("source %s is %s", src.Name, src.Lifecycle)
	}
	for i := range src.Readers {
		r := &src.Readers[i]
		if r.Head.Accuracy() == report.Unsupported {
			continue
		}
		head, ok := r.Head.Get()
		if !ok || head.After < uint64(s.epoch) {
			return r.Subtask + " has not seen the head of its source"
		}
		id, err := plan.ParseSubtask(r.Subtask)
		if err != nil {
			return err.Error()
		}
		to[id] = head.Position
	}
	return ""
}

// covered reports whether the committed epoch's positions have reached the goal.
func (c *Client) covered(ctx context.Context, h *job.Head, to goal) bool {
	if h.Durable == nil || h.Committed == 0 {
		return false
	}
	links, err := c.reg.Chain(ctx, h.Job, h.Durable.Ref, h.Committed)
	if err != nil || len(links) == 0 || links[0].Ref.Epoch != h.Committed {
		// The chain has moved on while it was read; the next head tells.
		return false
	}
	for id, want := range to {
		order, ok := position.Compare(links[0].Manifest.Subtasks[id].Position, want)
		if !ok || order < 0 {
			return false
		}
	}
	return true
}
