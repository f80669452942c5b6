package task_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/task"
)

// A zombie's message is refused and counted, and changes nothing.
func TestRefusedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	metrics, err := task.NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.metrics = metrics
		l.start(ctx)
		l.stop()
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(300 * time.Millisecond)
		d := l.run.d
		p, err := l.conn.NewPublisher(ctx, bus.PublisherConfig{MaxInFlightBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		zombie := envelope.Envelope{Kind: envelope.Rows, Fence: d.Fence - 1, Seq: 1, Epoch: 1, Table: "t", RowCount: 1, Payload: []byte("x")}
		subject := bus.DataSubject(d.Job, d.Fence, subtaskID("out", 1), subtaskID("gen", 0))
		for range 3 {
			if _, err := p.Publish(ctx, subject, zombie.Header(), zombie.Payload); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		l.epoch(ctx)
		judge(t, l, &target)
	})
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if n := sum(all, "weir.gate.refused", "out", "reason", "older"); n != 3 {
		t.Errorf("%d refused as older, want 3", n)
	}
	for _, reason := range []string{"newer", "duplicate", "gap", "malformed"} {
		if n := sum(all, "weir.gate.refused", "out", "reason", reason); n != 0 {
			t.Errorf("%d refused as %s", n, reason)
		}
	}
	sent, received := sum(all, "weir.task.rows", "gen", "direction", "out"), sum(all, "weir.task.rows", "out", "direction", "in")
	if rows := int64(len(target.Changes())); received < rows || sent < received || rows == 0 {
		t.Errorf("%d rows sent, %d received, %d in the target", sent, received, rows)
	}
}

// sum adds the points of a counter with this vertex and attribute; -1 when there is none.
func sum(all metricdata.ResourceMetrics, name, vertex, key, value string) int64 {
	n := int64(-1)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			data, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != name {
				continue
			}
			for _, p := range data.DataPoints {
				v, _ := p.Attributes.Value("vertex")
				if w, ok := p.Attributes.Value(attribute.Key(key)); ok && w.AsString() == value && v.AsString() == vertex {
					n = max(n, 0) + p.Value
				}
			}
		}
	}
	return n
}
