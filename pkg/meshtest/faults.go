package meshtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/task"
)

// FaultPlan says how often the bus misbehaves. Rates are probabilities per message; all are drawn from one seeded
// generator.
type FaultPlan struct {
	Seed uint64
	// Budget bounds the number of faults; zero is no bound.
	Budget int
	// Drop loses a data message, Repeat delivers it twice, Swap delivers it behind its successor, Delay keeps it and
	// everything behind it back for up to MaxDelay.
	Drop, Repeat, Swap, Delay float64
	MaxDelay                  time.Duration
	// RefusePublish ends a publisher with an unknown result.
	RefusePublish float64
	// LoseFact loses a fact of a kind, LateFact delivers it after up to MaxDelay, behind newer ones. The key is the
	// kind, "*" is every kind.
	LoseFact, LateFact map[string]float64
	// DeclineAck turns the ack of an epoch into the word that the subtask has no part of it to give.
	DeclineAck float64
}

// Faults puts a [FaultPlan] between subtasks and the bus. It is safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	plan  FaultPlan
	rng   *rand.Rand
	fired map[string]int
	total int
	off   bool
	late  sync.WaitGroup
}

// NewFaults makes the decorators of a plan.
func NewFaults(p FaultPlan) *Faults {
	return &Faults{plan: p, rng: rand.New(rand.NewPCG(p.Seed, 17)), fired: make(map[string]int)}
}

// Fired tells how often each fault has happened: a test whose fault did not happen proves nothing.
func (f *Faults) Fired() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.fired)
}

// Stop ends all faults; what is late still arrives.
func (f *Faults) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = true
}

// Wait blocks until everything late has arrived.
func (f *Faults) Wait() { f.late.Wait() }

// roll draws whether a fault happens.
func (f *Faults) roll(name string, rate float64) bool {
	if rate <= 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off || f.plan.Budget > 0 && f.total >= f.plan.Budget || f.rng.Float64() >= rate {
		return false
	}
	f.fired[name]++
	f.total++
	return true
}

func (f *Faults) pause() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan.MaxDelay <= 0 {
		return 0
	}
	return time.Duration(f.rng.Int64N(int64(f.plan.MaxDelay)))
}

// Bus disturbs the data plane.
func (f *Faults) Bus(b task.Bus) task.Bus { return faultyBus{b, f} }

type faultyBus struct {
	task.Bus
	f *Faults
}

func (b faultyBus) OpenReceiver(ctx context.Context, job string, at fence.Token, s plan.SubtaskID) (task.Receiver, error) {
	r, err := b.Bus.OpenReceiver(ctx, job, at, s)
	if err != nil {
		return nil, err
	}
	return &faultyReceiver{Receiver: r, f: b.f}, nil
}

func (b faultyBus) OpenPublisher(ctx context.Context, inFlight int64) (task.Publisher, error) {
	p, err := b.Bus.OpenPublisher(ctx, inFlight)
	if err != nil {
		return nil, err
	}
	return &faultyPublisher{Publisher: p, f: b.f}, nil
}

type faultyReceiver struct {
	task.Receiver
	f     *Faults
	again []task.Message
}

func (r *faultyReceiver) Next(ctx context.Context) (task.Message, error) {
	for {
		if len(r.again) > 0 {
			m := r.again[0]
			r.again = r.again[1:]
			return m, nil
		}
		m, err := r.Receiver.Next(ctx)
		if err != nil {
			return m, err
		}
		p := &r.f.plan
		switch {
		case r.f.roll("drop", p.Drop):
			m.Ack()
			continue
		case r.f.roll("repeat", p.Repeat):
			r.again = append(r.again, m)
		case r.f.roll("delay", p.Delay):
			if err := sleep(ctx, r.f.pause()); err != nil {
				return m, err
			}
		case r.f.roll("swap", p.Swap):
			next, err := r.Receiver.Next(ctx)
			if err != nil {
				return m, err
			}
			r.again = append(r.again, m)
			return next, nil
		}
		return m, nil
	}
}

type faultyPublisher struct {
	task.Publisher
	f    *Faults
	mu   sync.Mutex
	dead error
}

func (p *faultyPublisher) Publish(ctx context.Context, subject string, h bus.Header, data []byte) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead == nil && p.f.roll("refuse publish", p.f.plan.RefusePublish) {
		p.dead = fmt.Errorf("publish to %s: %w: the test has lost the acknowledgement", subject, bus.ErrUnknown)
	}
	if p.dead != nil {
		return 0, p.dead
	}
	return p.Publisher.Publish(ctx, subject, h, data)
}

// Facts disturbs what subtasks tell the coordinator.
func (f *Faults) Facts(to task.Facts) task.Facts { return faultyFacts{to, f} }

type faultyFacts struct {
	task.Facts
	f *Faults
}

func (b faultyFacts) PutFact(ctx context.Context, subject string, h bus.Header, data []byte) error {
	_, _, kind, _, err := bus.ParseAckSubject(subject)
	if err != nil {
		return err
	}
	rate := func(m map[string]float64) float64 { return max(m[kind], m["*"]) }
	switch {
	case b.f.roll("lose "+kind, rate(b.f.plan.LoseFact)):
		return nil
	case kind == string(envelope.Ack) && b.f.roll("decline "+kind, b.f.plan.DeclineAck):
		var a job.AckFact
		if err := json.Unmarshal(data, &a); err != nil {
			return err
		}
		a.Declined = "the test wants it so"
		if data, err = json.Marshal(a); err != nil {
			return err
		}
	case b.f.roll("late "+kind, rate(b.f.plan.LateFact)):
		after := b.f.pause()
		b.f.late.Go(func() {
			ctx := context.WithoutCancel(ctx)
			if sleep(ctx, after) == nil {
				_ = b.Facts.PutFact(ctx, subject, h, data) // as lossy as the plan wants it
			}
		})
		return nil
	}
	return b.Facts.PutFact(ctx, subject, h, data)
}

// sleep waits, but not longer than ctx lives.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
