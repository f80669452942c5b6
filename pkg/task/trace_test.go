package task_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/task"
)

// tap counts what subtasks send, by kind and by whether it carries a trace.
type tap struct {
	task.Bus
	mu   sync.Mutex
	sent map[string]int
}

func (t *tap) OpenPublisher(ctx context.Context, inFlight int64) (task.Publisher, error) {
	p, err := t.Bus.OpenPublisher(ctx, inFlight)
	return tapped{p, t}, err
}

type tapped struct {
	task.Publisher
	tap *tap
}

func (p tapped) Publish(ctx context.Context, subject string, h bus.Header, data []byte) (uint64, error) {
	p.tap.mu.Lock()
	defer p.tap.mu.Unlock()
	what := strings.Join(h["Weir-Kind"], "")
	if len(h["traceparent"]) > 0 {
		what += " traced"
	}
	p.tap.sent[what]++
	return p.Publisher.Publish(ctx, subject, h, data)
}

// Trace context is on the wire exactly when it is sampled.
func TestTraceOnTheWire(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, tt := range map[string]struct {
		trace         string
		sampler       sdktrace.Sampler
		rows, barrier bool
	}{
		"no tracer":                    {"", nil, false, false},
		"no tracer, the leader traces": {parent, nil, false, true},
		"nothing sampled":              {"", sdktrace.NeverSample(), false, false},
		"all sampled":                  {parent, sdktrace.AlwaysSample(), true, true},
		"the leader's choice":          {parent, sdktrace.ParentBased(sdktrace.NeverSample()), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var target meshtest.Target
			out := tracetest.NewInMemoryExporter()
			inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
				wire := &tap{Bus: l.wire, sent: make(map[string]int)}
				l.wire, l.trace = wire, tt.trace
				if tt.sampler != nil {
					l.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(out), sdktrace.WithSampler(tt.sampler)).Tracer("")
				}
				l.start(ctx)
				l.change(func(h *job.Head) { h.Phase = job.Running })
				for range 3 {
					pass(300 * time.Millisecond)
					l.epoch(ctx)
				}
				l.stop()
				for kind, traced := range map[string]bool{"rows": tt.rows, "barrier": tt.barrier} {
					plain, with := wire.sent[kind], wire.sent[kind+" traced"]
					if traced && (with == 0 || plain != 0) || !traced && (plain == 0 || with != 0) {
						t.Errorf("%s: %d with a trace, %d without", kind, with, plain)
					}
				}
				judge(t, l, &target)
			})
			spans := make(map[string]int)
			for _, s := range out.GetSpans() {
				spans[s.Name]++
			}
			// Three epochs through an enumerator, two readers, two writers and a committer.
			if tt.sampler != nil && tt.barrier && (spans["snapshot"] != 9 || spans["stage"] != 6 || spans["commit"] != 3) {
				t.Errorf("spans: %v", spans)
			}
			if !tt.barrier && len(spans) != 0 {
				t.Errorf("spans: %v", spans)
			}
		})
	}
}
