package node

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/task"
)

const lease = 3 * time.Second

func TestLeaseAndHeadsMakeANodeReady(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	c := newCondition(lease)
	if c.checkLease(now) == nil || c.checkHeads(now) == nil {
		t.Error("ready before anything has happened")
	}
	c.leased(now.Add(lease))
	c.judgeAll(nil, now)
	for _, tt := range []struct {
		after        time.Duration
		lease, heads bool
	}{
		{0, true, true},
		{lease - 1, true, true},
		{lease, false, true},
		{3 * lease, false, true},
		{3*lease + 1, false, false},
	} {
		at := now.Add(tt.after)
		if err := c.checkLease(at); (err == nil) != tt.lease {
			t.Errorf("lease after %s: %v", tt.after, err)
		}
		if err := c.checkHeads(at); (err == nil) != tt.heads {
			t.Errorf("heads after %s: %v", tt.after, err)
		}
	}
	c.leased(now.Add(time.Hour))
	if left := c.leaseLeft(now); left != time.Hour || c.checkLease(now.Add(time.Minute)) != nil {
		t.Errorf("renewed: %s left", left)
	}
	c.leased(time.Time{})
	if left := c.leaseLeft(now); left != 0 || c.checkLease(now) == nil {
		t.Errorf("lost: %s left", left)
	}
}

func TestTargetThatTakesNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	c := newCondition(lease)
	if err := c.checkTargets(now); err != nil {
		t.Errorf("nothing waits: %v", err)
	}
	c.wait([]stuck{
		{"shop", plan.SubtaskID{Vertex: plan.CommitterOf("out")}, task.Wait{Code: fault.SinkUnreachable, Since: now}},
		{"other", plan.SubtaskID{Vertex: plan.CommitterOf("out")}, task.Wait{Code: fault.SinkBusy, Since: now.Add(time.Hour)}},
	})
	if err := c.checkTargets(now.Add(3 * lease)); err != nil {
		t.Errorf("a pause that repeating is for: %v", err)
	}
	err := c.checkTargets(now.Add(time.Minute))
	if err == nil || err.Error() != "job shop: out_commit-0 waits for its target for 1m0s with WEIR-SINK-001" {
		t.Errorf("after a minute: %v", err)
	}
	c.wait(nil)
	if err := c.checkTargets(now.Add(time.Hour)); err != nil {
		t.Errorf("it takes commits again: %v", err)
	}
}

func TestFailedSubtaskUntilItsAttemptIsReplaced(t *testing.T) {
	t.Parallel()
	out := plan.SubtaskID{Vertex: "out", Index: 1}
	for name, tt := range map[string]struct {
		head *job.Head
		over bool
	}{
		"nothing decided yet": {&job.Head{Phase: job.Running, Fence: 4}, false},
		"the job has failed":  {&job.Head{Phase: job.Failed, Fence: 4}, false},
		"a late reading":      {&job.Head{Phase: job.Running, Fence: 3}, false},
		"another attempt":     {&job.Head{Phase: job.Starting, Fence: 5}, true},
		"cancelled":           {&job.Head{Phase: job.Cancelled, Fence: 4}, true},
		"deleted":             {nil, true},
	} {
		c := newCondition(lease)
		c.fail("shop", failure{4, out, "WEIR-SINK-003"})
		c.fail("shop", failure{4, plan.SubtaskID{Vertex: "gen"}, "later"})
		if err := c.checkSubtasks(); err == nil || err.Error() != "job shop: subtask out-1 failed with WEIR-SINK-003" {
			t.Errorf("%s: %v", name, err)
		}
		one, all := newCondition(lease), c
		one.fail("shop", failure{4, out, "x"})
		one.judge("other", nil)
		one.judge("shop", tt.head)
		views := map[string]job.View{"shop": {Head: tt.head}}
		if tt.head == nil {
			views = nil
		}
		all.judgeAll(views, time.Unix(1, 0))
		for _, c := range []*condition{one, all} {
			if err := c.checkSubtasks(); (err == nil) != tt.over {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestConditionsHaveTheNameOfTheirService(t *testing.T) {
	t.Parallel()
	checks := make(map[string]func() error)
	remove := newCondition(lease).register("sink", func(name string, check func() error) func() {
		checks[name] = check
		return func() { delete(checks, name) }
	})
	var red []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if checks[name]() != nil {
			red = append(red, name)
		}
	}
	if got := strings.Join(red, ", "); got != "sink heads, sink lease" || len(checks) != 4 {
		t.Errorf("%d checks, red: %s", len(checks), got)
	}
	remove()
	if len(checks) != 0 {
		t.Errorf("left: %v", checks)
	}
}
