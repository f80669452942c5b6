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
	"weir.dev/weir/pkg/report"
)

// CaughtUp waits until every source is INCREMENTAL and everything up to the second observation of its head made after
// the call is in an epoch that every sink has committed. The first observation may have been under way before the call;
// the second cannot have been. A job at rest that can never catch up is an error.
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
	// The sources of an idle job are looked at rarely, unless an epoch passes.
	if h, err := c.Head(ctx, name); err == nil && h.Phase.Active() {
		if err := c.epoch(ctx, name); err != nil {
			return err
		}
	}
	goal, err := c.heads(ctx, name)
	if err != nil {
		return err
	}
	if err := c.epoch(ctx, name); err != nil {
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
		seen = h.Committed
		if c.covered(ctx, h, goal) {
			return true, nil
		}
		// The reader was not there yet. Without input the next epoch would wait for the idle interval.
		return false, c.epoch(ctx, name)
	})
	return err
}

// epoch asks for one epoch now.
func (c *Client) epoch(ctx context.Context, name string) error {
	id := request()
	_, err := c.reg.Ask(ctx, name, func(i job.Intent) (job.Intent, error) { return i.Epoch(id, time.Now()), nil })
	if err != nil {
		return fmt.Errorf("ask for an epoch of %s: %w", name, err)
	}
	return nil
}

// heads waits for the second observation of every reader's head after now. A reader whose source has no head to observe
// has no goal: it is caught up when the job is.
func (c *Client) heads(ctx context.Context, name string) (map[plan.SubtaskID]position.Position, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	first := make(map[string]mark)
	for {
		goal, last, err := c.goal(ctx, name, first)
		if goal != nil || err != nil {
			return goal, err
		}
		select {
		case <-ctx.Done():
			return nil, waited(ctx, name, last)
		case <-tick.C:
		}
	}
}

// mark is an observation of a head: a new attempt counts from anew.
type mark struct{ fence, sequence uint64 }

// goal is not nil once every reader's head has been observed twice since first was empty. why says what is missing.
func (c *Client) goal(ctx context.Context, name string, first map[string]mark) (goal map[plan.SubtaskID]position.Position, why string, err error) {
	s, err := c.Status(ctx, name)
	switch {
	case err != nil:
		return nil, "", err
	case s.Phase == job.Finished:
		return map[plan.SubtaskID]position.Position{}, "", nil
	case s.Phase.AtRest():
		h, err := c.Head(ctx, name)
		if err != nil {
			return nil, "", err
		}
		return nil, "", reasonFault(h)
	case !s.Phase.Active():
		return nil, fmt.Sprintf("the job is %s (%s %s)", s.Phase, s.Reason.Code, s.Reason.Text), nil
	}
	goal = make(map[plan.SubtaskID]position.Position)
	for _, src := range s.Sources {
		if src.Lifecycle != report.Incremental {
			return nil, fmt.Sprintf("source %s is %s", src.Name, src.Lifecycle), nil
		}
		for _, r := range src.Readers {
			if r.Head.Accuracy() == report.Unsupported {
				continue
			}
			head, ok := r.Head.Get()
			if !ok {
				return nil, r.Subtask + " has not seen the head of its source", nil
			}
			if m, ok := first[r.Subtask]; !ok || m.fence != s.Fence {
				first[r.Subtask] = mark{s.Fence, head.Sequence}
			}
			if head.Sequence < first[r.Subtask].sequence+2 {
				return nil, r.Subtask + " has not seen the head of its source twice", nil
			}
			id, err := plan.ParseSubtask(r.Subtask)
			if err != nil {
				return nil, "", err
			}
			goal[id] = head.Position
		}
	}
	return goal, "", nil
}

// covered reports whether the committed epoch's positions have reached the goal.
func (c *Client) covered(ctx context.Context, h *job.Head, goal map[plan.SubtaskID]position.Position) bool {
	if h.Durable == nil || h.Committed == 0 {
		return false
	}
	links, err := c.reg.Chain(ctx, h.Job, h.Durable.Ref, h.Committed)
	if err != nil || len(links) == 0 || links[0].Ref.Epoch != h.Committed {
		// The chain has moved on while it was read; the next head tells.
		return false
	}
	for id, want := range goal {
		order, ok := position.Compare(links[0].Manifest.Subtasks[id].Position, want)
		if !ok || order < 0 {
			return false
		}
	}
	return true
}
