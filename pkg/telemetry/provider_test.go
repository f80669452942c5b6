package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/fault"
)

func open(t *testing.T, log io.Writer) *Provider {
	t.Helper()
	p, err := Open(t.Context(), Config{
		Service: "sink", Version: "test", Node: "n1", Logger: slog.New(slog.NewTextHandler(log, nil)), Env: os.LookupEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func count(t *testing.T, tel Telemetry) {
	t.Helper()
	c, err := tel.Meter.Int64Counter("weir.sink.rows", metric.WithUnit("{row}"), metric.WithDescription("Rows committed."))
	if err != nil {
		t.Fatal(err)
	}
	c.Add(t.Context(), 3)
}

func scrape(t *testing.T, p *Provider) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestPrometheusIsAlwaysOn(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	before := otel.GetMeterProvider()
	p := open(t, io.Discard)
	count(t, p.For("sink", "n1"))
	count(t, p.For("coordinator", "n1")) // the same instrument in another service of the process
	page := scrape(t, p)
	for _, want := range []string{
		`weir_sink_rows_total{otel_scope_name="weir/sink"`, `weir_sink_rows_total{otel_scope_name="weir/coordinator"`,
		"# HELP weir_sink_rows_total Rows committed.", "go_goroutines",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s:\n%s", want, page)
		}
	}
	_, span := p.For("sink", "n1").Tracer.Start(t.Context(), "commit")
	if span.SpanContext().IsValid() {
		t.Error("tracing is on by default")
	}
	span.End()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if otel.GetMeterProvider() != before { // T1
		t.Error("a global was set")
	}
}

func TestExportToACollector(t *testing.T) {
	var mu sync.Mutex
	paths := make(map[string]int)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths[r.URL.Path]++
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	p := open(t, io.Discard)
	count(t, p.For("sink", "n1"))
	_, span := p.For("sink", "n1").Tracer.Start(t.Context(), "commit")
	span.End()
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if paths["/v1/metrics"] == 0 || paths["/v1/traces"] == 0 {
		t.Errorf("the collector received %v", paths)
	}
}

// T3: a refusing collector costs one warning per signal, and nothing else.
func TestCollectorRefuses(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	var log strings.Builder
	p := open(t, &log)
	for range 3 {
		count(t, p.For("sink", "n1"))
		if err := p.meters.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "signal=metrics"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}

func TestExportersOf(t *testing.T) {
	tests := []struct {
		env             map[string]string
		metrics, traces bool
	}{
		{nil, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, false, true},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, false, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, false, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "prometheus"}, false, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, false, false},
	}
	for _, tt := range tests {
		got, err := exportersOf(func(n string) (string, bool) { v, ok := tt.env[n]; return v, ok })
		if err != nil || got != (exporters{tt.metrics, tt.traces}) {
			t.Errorf("%v: %+v, %v", tt.env, got, err)
		}
	}
	_, err := exportersOf(func(string) (string, bool) { return "zipkin", true })
	if e, ok := errors.AsType[*fault.Error](err); !ok || len(e.Problems) != 1 || fault.ExitCode(err) != fault.ExitRequest {
		t.Errorf("got %v", err)
	}
}

func TestTraceContextInHeaders(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL)
	p := open(t, io.Discard)
	defer func() { _ = p.Close(context.WithoutCancel(t.Context())) }()
	ctx, span := p.For("sink", "n1").Tracer.Start(t.Context(), "publish")
	defer span.End()

	h := map[string][]string{"Weir-Epoch": {"7"}}
	Inject(ctx, h)
	if len(h["traceparent"]) != 1 || h["Weir-Epoch"][0] != "7" {
		t.Fatalf("headers %v", h)
	}
	if got := trace.SpanContextFromContext(Extract(t.Context(), h)); got.TraceID() != span.SpanContext().TraceID() || !got.IsRemote() {
		t.Errorf("extracted %v", got)
	}
	if got := trace.SpanContextFromContext(Extract(t.Context(), map[string][]string{"Traceparent": h["traceparent"]})); got.SpanID() != span.SpanContext().SpanID() {
		t.Errorf("in NATS' writing of the name: %v", got)
	}
	one := Traceparent(ctx)
	if got := trace.SpanContextFromContext(Remote(t.Context(), one)); one == "" || got.SpanID() != span.SpanContext().SpanID() {
		t.Errorf("%q names %v", one, got)
	}
	unsampled := trace.ContextWithSpanContext(t.Context(), span.SpanContext().WithTraceFlags(0))
	if one := Traceparent(unsampled) + Traceparent(t.Context()); one != "" {
		t.Errorf("a span that is not sampled is %q", one)
	}
	if got := Remote(t.Context(), ""); got != t.Context() {
		t.Error("no traceparent changed the context")
	}
	bare := map[string][]string{}
	Inject(t.Context(), bare)
	if len(bare) != 0 {
		t.Errorf("a context without a span wrote %v", bare)
	}
}

func TestDiscard(t *testing.T) {
	tel := Discard().With(KeyJob, "shop")
	count(t, tel)
	_, span := tel.Tracer.Start(t.Context(), "x")
	span.End()
	tel.Logger.Info("nothing")
	count(t, Telemetry{Meter: Meter(nil), Tracer: Tracer(nil)})
	if Meter(tel.Meter) != tel.Meter || Tracer(tel.Tracer) != tel.Tracer {
		t.Error("a meter or a tracer was replaced")
	}
}
