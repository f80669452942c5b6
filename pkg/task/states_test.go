package task

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// memoryStates keeps objects by name.
type memoryStates map[string][]byte

func (m memoryStates) PutState(_ context.Context, subject string, data []byte) (epoch.Object, error) {
	m[subject] = slices.Clone(data)
	return epoch.Object{Subject: subject, Size: int64(len(data))}, nil
}

func (m memoryStates) GetState(_ context.Context, o epoch.Object) ([]byte, error) {
	data, ok := m[o.Subject]
	if !ok {
		return nil, bus.ErrNotFound
	}
	return data, nil
}

// State of any size is read back as it was, and every object it refers to is named flat, whether it travels inline or not.
func TestStateNamesItsObjects(t *testing.T) {
	t.Parallel()
	s := newStore(memoryStates{}, &plan.Deployment{Life: "life", Fence: 3}, plan.SubtaskID{Vertex: "db"})
	s.pass(4)
	ref, err := s.Put(t.Context(), []byte("rows"))
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range [][]epoch.Object{nil, {ref}} {
		for _, size := range []int{0, 1, inlineState, inlineState + 1} {
			state := bytes.Repeat([]byte{'s'}, size)
			kept, err := s.keep(t.Context(), state, named)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.load(t.Context(), kept)
			if err != nil || !bytes.Equal(got, state) {
				t.Errorf("%d bytes with %d objects came back as %d: %v", size, len(named), len(got), err)
			}
			for _, o := range named {
				if !slices.Contains(kept.Objects, o) {
					t.Errorf("%d bytes: %v are named, not %v", size, kept.Objects, o)
				}
			}
			if size > inlineState && len(kept.Inline) > 0 {
				t.Errorf("%d bytes travel inline", size)
			}
		}
	}
}

// What a source cannot get back is state of the job that is lost, what a sink cannot are rows that wait for their commit; each
// has its code.
func TestLostObject(t *testing.T) {
	t.Parallel()
	s := newStore(memoryStates{}, &plan.Deployment{Life: "life", Fence: 3}, plan.SubtaskID{Vertex: "db"})
	for lost, o := range map[fault.Code]objects{fault.JobStateLost: s.state(), fault.SinkStageLost: s.staged()} {
		_, err := o.Get(t.Context(), epoch.Object{Subject: "gone"})
		if fault.CodeOf(err) != lost || !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("error is %v, want %s", err, lost)
		}
	}
}
