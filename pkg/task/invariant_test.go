package task_test

import (
	"context"
	"testing"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// hastySpec never pauses, so that each barrier falls among rows.
const hastySpec = `
apiVersion: weir/v1
job: shop
sources:
  gen: {type: generator, rows: 120000, tables: 1, columns: 3, keys: 50, transaction_rows: 3, readers: 2}
sinks:
  out: {from: [gen], type: blackhole, mode: changelog, writers: 2}
`

// I4: the barrier goes in band, from the loop that reads. What was sent before the barrier of an epoch is what the state of
// that epoch covers: not a row more and not a row less.
func TestI4TheCutIsWhereTheBarrierIs(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, hastySpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		for range 3 {
			l.epoch(ctx)
		}
		src, _ := l.spec.Source("gen")
		among := 0
		for _, link := range l.order {
			covered, err := meshtest.Generated(*src.Config.(*spec.GeneratorSource), "gen", link.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			sent := uint64(0)
			for c, tally := range link.Manifest.Channels {
				if c.From.Vertex == plan.VertexID("gen") && c.To.Vertex == plan.VertexID("out") {
					sent += tally.Total.Rows
				}
			}
			if sent != uint64(len(covered)) {
				t.Errorf("epoch %d: %d rows were sent before its barrier, its state covers %d", link.Manifest.Epoch, sent, len(covered))
			}
			if 0 < sent && sent < 120000 {
				among++
			}
		}
		t.Logf("%d of 3 barriers fell among rows", among)
		if among == 0 {
			t.Error("no barrier fell among rows: the test proves nothing")
		}
	})
}
