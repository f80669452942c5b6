package blackhole

import (
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, mode := range []spec.Mode{spec.Append, spec.Changelog, spec.Upsert} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(*testing.T) sinktest.Fixture {
				return sinktest.Fixture{
					Connector: Connector{},
					Spec:      spec.Sink{Name: "hole", Type: "blackhole", Mode: mode, Config: &spec.BlackholeSink{}},
				}
			})
		})
	}
}

func TestOrderIsCheckedWithinAnAttempt(t *testing.T) {
	t.Parallel()
	c, err := Connector{}.OpenCommitter(t.Context(), sink.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := c.Claim(t.Context()); err != nil || row.Life != "" {
		t.Errorf("Claim = %+v, %v; want the zero row", row, err)
	}
	seven, nine := epoch.Ref{Epoch: 7, Digest: "7"}, epoch.Ref{Epoch: 9, Digest: "9"}
	if r, err := c.Commit(t.Context(), sink.Commit{Ref: seven, Prev: epoch.Ref{Epoch: 3, Digest: "3"}}); err != nil || !r.Applied {
		t.Errorf("the first epoch of an attempt: %+v, %v", r, err)
	}
	if _, err := c.Commit(t.Context(), sink.Commit{Ref: nine, Prev: epoch.Ref{Epoch: 8, Digest: "8"}}); fault.CodeOf(err) != fault.JobLedgerDiverged {
		t.Errorf("a gap: %v, want LEDGER_DIVERGED", err)
	}
	if r, err := c.Commit(t.Context(), sink.Commit{Ref: nine, Prev: seven}); err != nil || !r.Applied {
		t.Errorf("the next epoch: %+v, %v", r, err)
	}
}
