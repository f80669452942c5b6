package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/task"
)

// Why a node is not ready.
var (
	errNoLease   = errors.New("the lease has not been taken")
	errNeverRead = errors.New("the heads have not been read yet")
)

// condition is what a node knows of its own health. Sessions note into it, probes and gauges read it; it is safe for
// concurrent use and nothing in it waits.
type condition struct {
	mu sync.Mutex
	// lease is the time to live of leases; zero until the mesh was found.
	lease time.Duration
	// until is when the lease may be gone, zero without one; read is when all heads were last read.
	until, read time.Time
	// failed are subtasks that ended with an error in an attempt that has not been replaced, by job.
	failed map[string]failure
	// stuck are committers whose targets take nothing.
	stuck []stuck
}

// stuck is a committer that waits for its target.
type stuck struct {
	job     string
	subtask plan.SubtaskID
	task.Wait
}

// failure is the first subtask of an attempt that failed, and the code or class of its error, never its text.
type failure struct {
	fence   fence.Token
	subtask plan.SubtaskID
	why     string
}

func newCondition(lease time.Duration) *condition {
	return &condition{lease: lease, failed: make(map[string]failure)}
}

// keepTo notes the time to live of leases, by which patience is measured.
func (c *condition) keepTo(lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease = lease
}

// leased notes that the lease is held until then; the zero time says that it is not.
func (c *condition) leased(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
}

// fail notes that a subtask of an attempt has failed.
func (c *condition) fail(name string, f failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.failed[name]; !ok || old.fence < f.fence {
		c.failed[name] = f
	}
}

// judge takes one reading of a head in: a failure is over when another attempt has begun, or when the job is at rest for
// another reason than a failure.
func (c *condition) judge(name string, h *job.Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.failed[name]
	if ok && (h == nil || h.Fence > f.fence || h.Phase.AtRest() && h.Phase != job.Failed) {
		delete(c.failed, name)
	}
}

// judgeAll takes a reading of all heads in.
func (c *condition) judgeAll(views map[string]job.View, at time.Time) {
	c.mu.Lock()
	c.read = at
	names := slices.Collect(maps.Keys(c.failed))
	c.mu.Unlock()
	for _, name := range names {
		c.judge(name, views[name].Head)
	}
}

// leaseLeft is the time for which the lease is surely held, never negative.
func (c *condition) leaseLeft(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.until.Sub(now), 0)
}

// headsAge is the time since all heads were read; ok is false before the first time.
func (c *condition) headsAge(now time.Time) (age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.read), !c.read.IsZero()
}

// patience is how long what should go on may stand still.
func (c *condition) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 3 * c.lease
}

// checkLease fails without a lease.
func (c *condition) checkLease(now time.Time) error {
	if c.leaseLeft(now) == 0 {
		return errNoLease
	}
	return nil
}

// checkHeads fails when the heads were not read for three leases: what this node does may not be what is wanted.
func (c *condition) checkHeads(now time.Time) error {
	switch age, ok := c.headsAge(now); {
	case !ok:
		return errNeverRead
	case age > c.patience():
		return fmt.Errorf("the heads were not read for %s", age.Round(time.Second))
	}
	return nil
}

// checkSubtasks fails while a failed attempt has not been replaced.
func (c *condition) checkSubtasks() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failed) == 0 {
		return nil
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.failed)) {
		f := c.failed[name]
		all = append(all, fmt.Sprintf("job %s: subtask %s failed with %s", name, f.subtask, f.why))
	}
	return errors.New(strings.Join(all, "; "))
}

// wait notes which committers wait for their targets now.
func (c *condition) wait(all []stuck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = all
}

// checkTargets fails when a target has taken nothing for three leases: the process lives, and nothing arrives. A shorter
// pause is what repeating is for.
func (c *condition) checkTargets(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, s := range c.stuck {
		if age := now.Sub(s.Since); age > 3*c.lease {
			all = append(all, fmt.Sprintf("job %s: %s waits for its target for %s with %s", s.job, s.subtask, age.Round(time.Second), s.Code))
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return errors.New(strings.Join(all, "; "))
}

// register adds the conditions of readiness of this node; name tells the services of one process apart.
func (c *condition) register(name string, add func(name string, check func() error) (remove func())) (remove func()) {
	removes := []func(){
		add(name+" lease", func() error { return c.checkLease(time.Now()) }),
		add(name+" heads", func() error { return c.checkHeads(time.Now()) }),
		add(name+" subtasks", c.checkSubtasks),
		add(name+" targets", func() error { return c.checkTargets(time.Now()) }),
	}
	return func() {
		for _, r := range removes {
			r()
		}
	}
}
