package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/task"
	"weir.dev/weir/pkg/telemetry"
)

// seat is what a node does for one job. It belongs to the node's loop.
type seat struct {
	n    *node
	name string
	log  *slog.Logger
	seen job.Seen
	// acted is the place of view, for the goroutines of subtasks.
	acted atomic.Pointer[job.Order]
	held  job.Held
	// view is the newest record acted on; spec is that of held.Plan.
	view   job.View
	spec   *spec.Job
	orders task.Orders
	// asked is what somebody waits to be told of, since askedAt.
	asked   job.Asked
	askedAt time.Time
	// fetching is the attempt whose plan is being read.
	fetching fence.Token
	subtasks []*task.Subtask
	boards   []*task.Board
	cancel   context.CancelCauseFunc
	// release tells the answer to a request to drop external resources.
	release context.CancelFunc
	warned  bool
	// ended is done when no goroutine of the job runs any more, of any attempt.
	ended sync.WaitGroup
}

func newSeat(n *node, name string) *seat {
	return &seat{n: n, name: name, log: n.log.With(telemetry.KeyJob, name)}
}

// match makes the process do what the record wants.
func (s *seat) match(ctx context.Context, v job.View) {
	s.view, s.warned = v, false
	order := job.OrderOf(v)
	before := s.acted.Swap(&order)
	news := before == nil || *before != order
	for range maxRounds {
		todo := job.Want(v.Head, s.n.self(), s.held)
		if len(todo) == 0 {
			break
		}
		news = true
		for _, a := range todo {
			if !s.do(ctx, v.Head, a) {
				return
			}
		}
	}
	if !news {
		return // subtasks have these orders, and there is nothing in them that they could forget
	}
	s.n.moved = time.Now()
	s.owe(v.Head)
	s.answered(v.Head)
	if v.Head != nil && s.held.Started && s.held.Fence == v.Head.Fence {
		s.orders.Head = *v.Head
		for _, t := range s.subtasks {
			t.Obey(s.orders)
		}
	}
}

// maxRounds bounds asking Want again after its actions; two are needed at most.
const maxRounds = 8

// do performs one action; false says that its result will come later.
func (s *seat) do(ctx context.Context, h *job.Head, a job.Action) bool {
	switch a := a.(type) {
	case job.Stop:
		s.log.InfoContext(ctx, "attempt ends", telemetry.KeyFence, uint64(a.Fence))
		s.stop(ctx, fence.ErrFenced)
		s.held = job.Held{Releasing: s.held.Releasing}
	case job.ReadPlan:
		s.fetch(ctx, h, a.Ref)
		return false
	case job.Start:
		s.start(ctx, a)
	case job.Emit:
		s.held.Emitting, s.orders.Emit = true, true
	case job.Drain:
		s.held.Draining, s.orders.Drain = true, true
	case job.Barrier:
		s.held.Barrier = a.Epoch
		s.orders.Barrier, s.orders.Kind = a.Epoch, a.Kind
		if h.Durable != nil {
			s.orders.Covered = h.Durable.Epoch
		}
	case job.CommitUpTo:
		s.held.Durable = a.Durable.Epoch
		s.orders.Durable = &a.Durable
	case job.Confirm:
		s.held.Committed, s.orders.Committed = a.Epoch, a.Epoch
	case job.DropExternal:
		s.held.Releasing = a.Request
		s.drop(ctx, h, a)
	}
	return true
}

// fetch reads the plan of an attempt and the spec in it, beside the loop.
func (s *seat) fetch(ctx context.Context, h *job.Head, ref job.PlanRef) {
	if s.fetching == ref.Fence {
		return
	}
	s.fetching = ref.Fence
	life := h.Life
	s.n.work.Go(func() {
		d, err := s.n.mesh.Records.Plan(ctx, ref)
		var j *spec.Job
		if err == nil {
			j, err = spec.Parse(d.Spec, "the plan's spec")
		}
		if err == nil && (d.Fence != ref.Fence || d.Life != life || d.Job != s.name) {
			err = fmt.Errorf("the plan is of job %s, life %s, fence %s", d.Job, d.Life, d.Fence)
		}
		s.n.post(ctx, func() {
			s.fetching = 0
			if err != nil {
				// Tried again at the next reading.
				s.log.WarnContext(ctx, "plan not read", telemetry.KeyFence, uint64(ref.Fence), telemetry.KeyError, err)
				return
			}
			if s.view.Head != nil && s.view.Head.Fence == ref.Fence {
				s.held.Fence, s.held.Plan, s.spec = ref.Fence, d, j
				s.match(ctx, s.view)
			}
		})
	})
}

// start runs the node's subtasks of an attempt. A subtask that cannot even be made has failed.
func (s *seat) start(ctx context.Context, a job.Start) {
	s.held.Started = true
	s.orders = task.Orders{}
	actx, cancel := context.WithCancelCause(ctx)
	s.cancel = cancel
	s.n.metrics.attempt(ctx, s.name, true)
	s.log.InfoContext(ctx, "attempt starts", telemetry.KeyFence, uint64(a.Fence), "subtasks", len(a.Subtasks))
	for _, id := range a.Subtasks {
		board := task.NewBoard(s.n.mesh.Facts, s.name, a.Fence, id, s.log)
		s.boards = append(s.boards, board)
		s.ended.Go(func() { board.Run(actx) })
		t, err := task.New(s.config(ctx, id, a, board))
		if err != nil {
			s.failed(actx, a.Fence, id, board, err)
			continue
		}
		s.subtasks = append(s.subtasks, t)
		s.ended.Go(func() { s.failed(actx, a.Fence, id, board, s.run(actx, t)) })
	}
}

// run runs a subtask and counts it for as long as it runs.
func (s *seat) run(ctx context.Context, t *task.Subtask) error {
	s.n.metrics.subtasks(ctx, s.name, 1)
	defer s.n.metrics.subtasks(context.WithoutCancel(ctx), s.name, -1)
	return t.Run(ctx)
}

func (s *seat) config(ctx context.Context, id plan.SubtaskID, a job.Start, board *task.Board) task.Config {
	c := task.Config{
		Subtask: id, Plan: s.held.Plan, Spec: s.spec, Incarnation: s.n.me.Incarnation, Restore: a.Restore, Resnapshot: a.Resnapshot, Restored: a.Restored,
		Bus: s.n.mesh.Bus, States: s.n.mesh.States, Records: records{s.n.mesh, &s.acted}, Letters: s.n.mesh.Letters, Board: board,
		Resolve: s.resolve, Hold: s.n.mesh.Holds, Logger: s.log, Metrics: s.n.metrics.tasks, Tracer: s.n.cfg.Tracer,
		Reread: func() { s.n.post(ctx, func() { s.n.reread(ctx) }) },
	}
	c.Applied, c.Adopted = a.Applied, a.Adopted
	v, _ := s.held.Plan.Vertex(id.Vertex)
	switch v.Role {
	case plan.Enumerator, plan.Reader:
		src, _ := s.spec.Source(v.Name)
		c.Source = s.n.cfg.Sources[src.Type]
	case plan.Writer, plan.Committer:
		snk, _ := s.spec.Sink(v.Name)
		c.Sink = s.n.cfg.Sinks[snk.Type]
	case plan.Transform:
	}
	return c
}

// resolve turns a reference of a spec into its value; the value is not kept.
func (s *seat) resolve(ref string) (string, error) {
	return config.NewSecret(ref).Resolve(s.n.cfg.Lookup)
}

// failed tells that a subtask has ended, if a head record read afterwards still names its fence (N4). It runs beside the
// loop.
func (s *seat) failed(ctx context.Context, own fence.Token, id plan.SubtaskID, board *task.Board, err error) {
	for pause := waitSoon; ; pause = min(2*pause, waitLate) {
		if ctx.Err() != nil {
			return
		}
		h, rerr := records{s.n.mesh, &s.acted}.Head(ctx, s.name)
		switch {
		case rerr != nil:
			if sleep(ctx, pause) != nil {
				return
			}
			continue
		case h == nil || h.Fence != own || h.Phase.AtRest():
			s.log.InfoContext(ctx, "subtask ended with its attempt", telemetry.KeySubtask, id.String(), telemetry.KeyError, err)
			return
		}
		break
	}
	s.log.ErrorContext(ctx, "subtask failed", telemetry.KeySubtask, id.String(), telemetry.KeyError, err)
	class := fault.ClassOf(err)
	if errors.Is(err, fence.ErrFenced) {
		class = fault.Fenced
	}
	s.n.metrics.fail(ctx, s.name, id.Vertex, class.String())
	why := string(fault.CodeOf(err))
	if why == "" {
		why = class.String()
	}
	s.n.health.fail(s.name, failure{fence: own, subtask: id, why: why})
	body, merr := json.Marshal(fault.Of(err))
	if merr != nil {
		body = nil
	}
	board.Open(envelope.Failed, 0, job.FailedFact{Fence: own, Subtask: id, Class: class.String(), Fault: body})
}

// stop ends the subtasks of the attempt without waiting: one that is inside a driver may take its time, and whatever it
// still does is refused by bus and ledger.
func (s *seat) stop(ctx context.Context, cause error) {
	if s.cancel != nil {
		s.cancel(cause)
		s.n.metrics.attempt(ctx, s.name, false)
	}
	if s.release != nil {
		s.release()
	}
	s.cancel, s.release, s.subtasks, s.boards = nil, nil, nil, nil
}

// repeat tells all open facts again.
func (s *seat) repeat() {
	for _, b := range s.boards {
		b.Repeat()
	}
}

// regressed stops everything of a job whose record went back (N2).
func (s *seat) regressed(ctx context.Context, v job.View) {
	if s.warned {
		return
	}
	s.warned = true
	seen := job.OrderOf(v)
	err := fault.New(fault.JobHeadRegressed, "jobs."+s.name, fmt.Sprintf(
		"term %d, fence %s, revision %d; seen were term %d, fence %s, revision %d",
		seen.Term, seen.Fence, seen.Revision, s.seen.Newest.Term, s.seen.Newest.Fence, s.seen.Newest.Revision))
	s.n.metrics.regress(ctx, s.name)
	s.log.ErrorContext(ctx, "head record went back, everything of the job is stopped", telemetry.KeyError, err)
	s.stop(ctx, err)
	// Started stays: this attempt never runs here again.
}

// answered ends the repetition of a release that the leader has taken in, or gave to another process.
func (s *seat) answered(h *job.Head) {
	if s.release == nil {
		return
	}
	if h == nil || h.Release == nil || h.Release.Done || (job.ReleaseID{Life: h.Life, Try: h.Release.Try}) != s.held.Releasing {
		s.release()
		s.release = nil
	}
}

var errNoConnector = errors.New("this process has no such connector")

// releaseTime bounds one try to drop external resources.
const releaseTime = 30 * time.Second
