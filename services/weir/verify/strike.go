package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

// strike does harm and notes what it met. do returns the proof that it happened.
func (t *trial) strike(injection string, do func() (evidence string, err error)) error {
	before := t.journal.now().head
	f := Fault{Injection: injection, FenceBefore: before.Fence, TermBefore: before.Term}
	if before.Durable != nil {
		f.Before = before.Durable.Epoch
	}
	at := time.Now()
	evidence, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", injection, err)
	}
	if evidence == "" {
		return fmt.Errorf("%s: nothing shows that it happened", injection)
	}
	f.Evidence, f.At = evidence, at.UTC()
	if t.first.IsZero() {
		t.first = at
	}
	t.faults = append(t.faults, f)
	return nil
}

// recovered waits for the first durable epoch that was triggered after the newest fault, and notes how the mesh got there.
func (t *trial) recovered(ctx context.Context) error {
	return t.recoveredFrom(ctx, t.firstSight(t.faults[len(t.faults)-1].At))
}

// headRecovered is recovered, and the head record that is there then.
func (t *trial) headRecovered(ctx context.Context) (*job.Head, error) {
	if err := t.recovered(ctx); err != nil {
		return nil, err
	}
	return t.control.Head(ctx, t.id)
}

// recoveredFrom is recovered by what was seen from an index on.
func (t *trial) recoveredFrom(ctx context.Context, from int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverTime, errors.New("it took too long"))
	defer cancel()
	f := &t.faults[len(t.faults)-1]
	var failed error
	var newest epoch.ID
	s, _, err := t.journal.await(ctx, "an epoch that is triggered after the fault to be durable", from, func(h job.Head) bool {
		if h.Phase.AtRest() && h.Phase != job.Suspended {
			failed = fmt.Errorf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
			return true
		}
		if h.Durable == nil || h.Durable.Epoch <= max(f.Before, newest) {
			return false
		}
		newest = h.Durable.Epoch
		m, err := t.manifest(ctx, h.Durable.Ref)
		if err != nil || !m.Triggered.After(f.At) {
			return false
		}
		d := seconds(m.Completed.Sub(f.At))
		f.Durable = &d
		return true
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("after %s: %w", f.Injection, err)
	}
	f.After, f.Fence, f.Term = s.head.Durable.Epoch, s.head.Fence, s.head.Term
	t.trace(f)
	return nil
}

// manifest reads one, for as long as the bus may be away.
func (t *trial) manifest(ctx context.Context, ref epoch.Ref) (m *epoch.Manifest, err error) {
	err = eventually(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		m, err = t.reg.Manifest(ctx, t.id, ref)
		if errors.Is(err, bus.ErrNotFound) {
			m, err = &epoch.Manifest{}, nil // collected already: not the first one
		}
		return err
	})
	return m, err
}

// firstSight is the index of the first head seen after a moment.
func (t *trial) firstSight(at time.Time) int {
	for i, s := range t.journal.since(0) {
		if s.at.After(at) {
			return i
		}
	}
	return t.journal.length()
}

// trace reads from the journal when the mesh acted and from which epoch it went on.
func (t *trial) trace(f *Fault) {
	for _, s := range t.journal.since(t.firstSight(f.At)) {
		h := s.head
		if f.Detect == nil && (h.Fence > f.FenceBefore || h.Term > f.TermBefore || !h.Phase.Active()) {
			d := seconds(s.at.Sub(f.At))
			f.Detect = &d
		}
		if f.Restored == nil && h.Fence > f.FenceBefore && h.Plan != nil && h.Plan.Fence > f.FenceBefore && h.Plan.Restore != nil {
			from := h.Plan.Restore.Epoch
			f.Restored = &from
		}
	}
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
