package node

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

// lateHeads answers with one view after the other, the last for ever.
type lateHeads struct{ views []job.View }

func (*lateHeads) Watch(context.Context) (<-chan bus.Update, func()) { return nil, func() {} }

func (*lateHeads) Heads(context.Context, ...string) (map[string]job.View, error) { return nil, nil }

func (h *lateHeads) Head(context.Context, string) (job.View, error) {
	v := h.views[0]
	if len(h.views) > 1 {
		h.views = h.views[1:]
	}
	return v, nil
}

func at(revision uint64) job.View {
	return job.View{Head: &job.Head{Term: 1, Fence: 1, NextEpoch: 1}, Revision: revision}
}

// A server of a cluster may answer with a head that is older than the one the process acts on. A subtask that asks whether
// it may commit waits for a current one, and is never told an old one, nor that there is none.
func TestSubtasksReadNoOlderHead(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]job.View{"older": at(6), "none": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var acted atomic.Pointer[job.Order]
				order := job.OrderOf(at(7))
				acted.Store(&order)
				r := records{Mesh{Heads: &lateHeads{[]job.View{late, late, at(7)}}}, &acted}
				if h, err := r.Head(t.Context(), "shop"); err != nil || h == nil {
					t.Errorf("behind two late readings: %v, %v", h, err)
				}
				r.m.Heads = &lateHeads{[]job.View{late}}
				if h, err := r.Head(t.Context(), "shop"); !errors.Is(err, fault.Transient) {
					t.Errorf("a server that stays late: %v, %v", h, err)
				}
			})
		})
	}
}
