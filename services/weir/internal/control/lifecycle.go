package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// answerTime is how long the leader has to answer an intent before the command says that nobody did.
const answerTime = 15 * time.Second

// Submission says what became of a submit.
type Submission struct {
	Job    string    `json:"job"`
	Life   string    `json:"life"`
	Phase  job.Phase `json:"phase"`
	Digest string    `json:"digest"`
	// Unchanged says that a job with an equal spec was already there.
	Unchanged bool `json:"unchanged"`
}

// Submit asks for a life of the job. An equal spec of a life that is not over is no change; a different one is
// [fault.CLISpecDiffers] with the difference. A spec that holds a password in plain text is refused unless plain is set.
func (c *Client) Submit(ctx context.Context, j *spec.Job, file string, plain bool) (Submission, error) {
	if _, err := plan.FromSpec(j); err != nil {
		return Submission{}, err
	}
	if where := j.LiteralPasswords(); len(where) > 0 && !plain {
		return Submission{}, fault.New(fault.SpecLiteralSecret, where[0], "the spec is stored in the registry, where others can read it", "path", where[0])
	}
	s := Submission{Job: j.Name, Digest: j.Digest()}
	v, err := c.reg.Head(ctx, j.Name)
	if err != nil {
		return s, fmt.Errorf("read the head of %s: %w", j.Name, err)
	}
	if h := v.Head; h != nil && !over(h.Phase) {
		s.Life, s.Phase, s.Unchanged = h.Life, h.Phase, true
		return s, c.compare(ctx, j, file, h)
	}
	digest, err := c.reg.PutSpec(ctx, j)
	if err != nil {
		return s, fmt.Errorf("store the spec of %s: %w", j.Name, err)
	}
	id := request()
	_, err = c.reg.Ask(ctx, j.Name, func(i job.Intent) (job.Intent, error) {
		return i.Submit(j.Name, digest, id, time.Now()), nil
	})
	if err != nil {
		return s, fmt.Errorf("ask for job %s: %w", j.Name, err)
	}
	var before string
	if v.Head != nil {
		before = v.Head.Life
	}
	h, err := c.answered(ctx, j.Name, func(h *job.Head) bool { return h != nil && h.Life != before })
	if h != nil {
		s.Life, s.Phase = h.Life, h.Phase
	}
	return s, err
}

// over reports whether a life has ended for good: a submit starts a new one.
func over(p job.Phase) bool {
	return slices.Contains([]job.Phase{job.Finished, job.Cancelled, job.Deleted}, p)
}

// compare refuses a spec that differs from the one the life runs.
func (c *Client) compare(ctx context.Context, j *spec.Job, file string, h *job.Head) error {
	stored, err := c.reg.Spec(ctx, j.Name, h.SpecDigest)
	if err != nil {
		return fmt.Errorf("read the spec of %s: %w", j.Name, err)
	}
	if stored.Digest() == j.Digest() {
		return nil
	}
	diff := udiff.Unified("running", file, stored.Redacted(), j.Redacted())
	return fault.New(fault.CLISpecDiffers, j.Name, diff, "job", j.Name, "file", file)
}

// Asked says what became of a request about a job.
type Asked struct {
	Job       string    `json:"job"`
	Phase     job.Phase `json:"phase"`
	Durable   uint64    `json:"durable"`
	Committed uint64    `json:"committed"`
	// Undo is the command that takes it back, or says that nothing can.
	Undo string `json:"undo"`
}

func asked(h *job.Head, undo string) Asked {
	a := Asked{Job: h.Job, Phase: h.Phase, Committed: uint64(h.Committed), Undo: undo}
	if h.Durable != nil {
		a.Durable = uint64(h.Durable.Epoch)
	}
	return a
}

// Cancel stops the job at once and for good.
func (c *Client) Cancel(ctx context.Context, name string) (Asked, error) {
	if err := c.allowed(ctx, name, "cancel", job.Created, job.Starting, job.Running, job.Draining, job.Suspending, job.Suspended, job.Failed); err != nil {
		return Asked{}, err
	}
	h, err := c.ask(ctx, name, job.Intent.Cancelled, func(h *job.Head) bool { return over(h.Phase) })
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can; `weir job submit` starts a new life that reads the source from then on"), nil
}

// Drain lets the job finish what its sources hold now. It waits for FINISHED as long as ctx allows when wait is set.
func (c *Client) Drain(ctx context.Context, name string, timeout time.Duration, wait bool) (Asked, error) {
	if err := c.allowed(ctx, name, "drain", job.Created, job.Starting, job.Running, job.Draining); err != nil {
		return Asked{}, err
	}
	change := func(i job.Intent, request string, at time.Time) job.Intent { return i.Drained(timeout, request, at) }
	h, err := c.ask(ctx, name, change, func(h *job.Head) bool { return h.Drain != nil || h.Phase.AtRest() })
	if err != nil {
		return Asked{}, err
	}
	return c.rested(ctx, h, wait, "nothing can; `weir job submit` starts a new life that reads the source from then on")
}

// Suspend has a job take a SAVEPOINT epoch and come to rest, whether or not its sinks take commits. With wait it returns when the
// job rests, as long as ctx allows.
func (c *Client) Suspend(ctx context.Context, name string, wait bool) (Asked, error) {
	if err := c.allowed(ctx, name, "suspend", job.Created, job.Starting, job.Running, job.Draining, job.Suspending); err != nil {
		return Asked{}, err
	}
	h, err := c.ask(ctx, name, job.Intent.Suspended, func(h *job.Head) bool { return h.Phase == job.Suspending || h.Phase.AtRest() })
	if err != nil {
		return Asked{}, err
	}
	return c.rested(ctx, h, wait, "weir job resume "+name)
}

// rested answers for a stop that has begun; with wait when the job rests.
func (c *Client) rested(ctx context.Context, h *job.Head, wait bool, undo string) (Asked, error) {
	if wait {
		var err error
		if h, err = c.Await(ctx, h.Job, func(h *job.Head) (bool, error) { return h != nil && h.Phase.AtRest(), nil }); err != nil {
			return Asked{}, err
		}
	}
	if h.Phase == job.Failed {
		return asked(h, ""), reasonFault(h)
	}
	return asked(h, undo), nil
}

// Resume lets a FAILED or SUSPENDED job go on from its durable epoch.
func (c *Client) Resume(ctx context.Context, name string) (Asked, error) {
	if err := c.allowed(ctx, name, "resume", job.Failed, job.Suspended); err != nil {
		return Asked{}, err
	}
	h, err := c.ask(ctx, name, job.Intent.Resumed, func(h *job.Head) bool { return !h.Phase.AtRest() })
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "weir job cancel "+name+" --yes"), nil
}

// Delete stops the job and drops everything of it outside its targets.
func (c *Client) Delete(ctx context.Context, name string) (Asked, error) {
	if _, err := c.Head(ctx, name); err != nil {
		return Asked{}, err
	}
	h, err := c.ask(ctx, name, job.Intent.Removed, func(h *job.Head) bool {
		return h.Phase == job.Deleted && (h.Release == nil || h.Release.Done)
	})
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can; the target keeps its rows"), nil
}

// allowed refuses a command early that the phase does not allow. The leader decides again.
func (c *Client) allowed(ctx context.Context, name, what string, phases ...job.Phase) error {
	h, err := c.Head(ctx, name)
	if err != nil {
		return err
	}
	if slices.Contains(phases, h.Phase) {
		return nil
	}
	return fault.New(fault.CLIWrongPhase, name, fmt.Sprintf("the job is %s; %s is for %v", h.Phase, what, phases), "job", name, "allowed", commands(h.Phase))
}

// commands lists what a phase allows.
func commands(p job.Phase) string {
	switch p {
	case job.Created, job.Starting, job.Running, job.Draining, job.Suspending:
		return "apply, drain, suspend, savepoint, resnapshot, cancel, delete"
	case job.Failed, job.Suspended:
		return "resume, restore, rewind, adopt, apply, resnapshot, cancel, delete"
	case job.Finished, job.Cancelled:
		return "submit, delete"
	case job.Deleted:
	}
	return "submit"
}

// ask writes an intent and waits until the leader has answered it.
func (c *Client) ask(ctx context.Context, name string, change func(i job.Intent, request string, at time.Time) job.Intent, done func(*job.Head) bool) (*job.Head, error) {
	if err := c.intend(ctx, name, change); err != nil {
		return nil, err
	}
	return c.answered(ctx, name, func(h *job.Head) bool { return h != nil && done(h) })
}

// intend writes an intent.
func (c *Client) intend(ctx context.Context, name string, change func(i job.Intent, request string, at time.Time) job.Intent) error {
	id := request()
	_, err := c.reg.Ask(ctx, name, func(i job.Intent) (job.Intent, error) { return change(i, id, time.Now()), nil })
	if err != nil {
		return fmt.Errorf("ask job %s: %w", name, err)
	}
	return nil
}

func (c *Client) answered(ctx context.Context, name string, done func(*job.Head) bool) (*job.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return c.Await(ctx, name, func(h *job.Head) (bool, error) { return done(h), nil })
}

// reasonFault turns a head's reason back into the error it came from.
func reasonFault(h *job.Head) error {
	e := fault.New(fault.Code(h.Reason.Code), h.Job, h.Reason.Text)
	if h.Reason.Remedy != "" {
		e.Remedy = h.Reason.Remedy
	}
	if h.Reason.Subtask != nil {
		e.Where = h.Job + "/" + h.Reason.Subtask.String()
	}
	return e
}
