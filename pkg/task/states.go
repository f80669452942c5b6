package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// inlineState is the size up to which state travels in the ack and the manifest.
const inlineState = 32 << 10

// segmentSize is the size of the objects in which a source keeps what it cannot hold.
const segmentSize = 16 << 20

// storeTries bounds how often a piece is stored again when the result is unknown; storing the same name twice is safe.
const (
	storeTries = 5
	storePause = 200 * time.Millisecond
)

// store names and keeps the state objects of one subtask: <life>.<fence>.<epoch>.<subtask>.<n>, where epoch is the last
// barrier passed plus one, so that garbage collection knows what can still be named. It is safe for concurrent use.
type store struct {
	states  States
	plan    *plan.Deployment
	subtask plan.SubtaskID

	mu     sync.Mutex
	passed epoch.ID
	n      int
}

func newStore(states States, d *plan.Deployment, s plan.SubtaskID) *store {
	return &store{states: states, plan: d, subtask: s}
}

// pass says that the barrier of epoch e has been passed.
func (s *store) pass(e epoch.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed, s.n = e, 0
}

// Put makes an object safe.
func (s *store) Put(ctx context.Context, data []byte) (epoch.Object, error) {
	s.mu.Lock()
	name := bus.StateSubject(s.plan.Life, s.plan.Fence, s.passed+1, s.subtask, s.n)
	s.n++
	s.mu.Unlock()
	for try := 1; ; try++ {
		o, err := s.states.PutState(ctx, name, data)
		if err == nil || try == storeTries || ctx.Err() != nil || !errors.Is(err, fault.Transient) {
			return o, err
		}
		if err := sleep(ctx, storePause<<try); err != nil {
			return o, err
		}
	}
}

// Get reads an object back and checks its digest.
func (s *store) Get(ctx context.Context, o epoch.Object) ([]byte, error) {
	return s.states.GetState(ctx, o)
}

// keep puts a subtask's state where the ack can name it, and names the objects that the state refers to.
func (s *store) keep(ctx context.Context, state []byte, named []epoch.Object) (epoch.State, error) {
	if len(state) <= inlineState && (len(state) > 0 || len(named) == 0) {
		return epoch.State{Inline: state, Objects: named}, nil
	}
	o, err := s.Put(ctx, state)
	if err != nil {
		return epoch.State{}, fmt.Errorf("store state: %w", err)
	}
	return epoch.State{Objects: append([]epoch.Object{o}, named...)}, nil
}

// load reads a subtask's state back.
func (s *store) load(ctx context.Context, st epoch.State) ([]byte, error) {
	if len(st.Inline) > 0 || len(st.Objects) == 0 {
		return st.Inline, nil
	}
	return s.state().Get(ctx, st.Objects[0])
}

// objects is the store as a connector sees it: what is not there any more is the fault lost.
type objects struct {
	*store

	lost fault.Code
}

// state is the store for what a source has put aside, staged for the rows of a sink that wait for their commit: of those only the
// source has another copy.
func (s *store) state() objects  { return objects{s, fault.JobStateLost} }
func (s *store) staged() objects { return objects{s, fault.SinkStageLost} }

// Get reads an object back; one that is missing or damaged is lost.
func (o objects) Get(ctx context.Context, ref epoch.Object) ([]byte, error) {
	data, err := o.store.Get(ctx, ref)
	if errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrDamaged) {
		return nil, fault.Wrap(err, o.lost, o.subtask.String(), err.Error())
	}
	return data, err
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
