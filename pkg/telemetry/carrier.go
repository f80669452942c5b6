package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// carrier reads and writes headers whose keys are used as they are, as on NATS.
type carrier map[string][]string

// Get returns the first value of a key. Keys in another letter case are found too: other programs may have written them.
func (c carrier) Get(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	for k, v := range c {
		if len(v) > 0 && strings.EqualFold(k, key) {
			return v[0]
		}
	}
	return ""
}

// Set gives a key one value.
func (c carrier) Set(key, value string) { c[key] = []string{value} }

// Keys returns the keys in no order.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}

// Inject writes the W3C trace context of ctx into headers. Without a span in ctx the headers stay as they are.
func Inject(ctx context.Context, headers map[string][]string) {
	propagation.TraceContext{}.Inject(ctx, carrier(headers))
}

// Extract returns ctx with the trace context found in headers, or ctx itself.
func Extract(ctx context.Context, headers map[string][]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, carrier(headers))
}

// headerParent is the header of W3C trace context.
const headerParent = "traceparent"

// Traceparent is the W3C form of the span in ctx, for places that carry one text. It is empty without a span and for one
// that is not sampled: then nobody is to continue it.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	h := make(map[string][]string, 1)
	Inject(ctx, h)
	return carrier(h).Get(headerParent)
}

// Remote returns ctx with the span that a traceparent names, or ctx itself when it names none.
func Remote(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return Extract(ctx, map[string][]string{headerParent: {traceparent}})
}
