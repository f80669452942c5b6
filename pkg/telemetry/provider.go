package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"weir.dev/weir/pkg/fault"
)

// Telemetry is what a service records with.
type Telemetry struct {
	Logger *slog.Logger
	Meter  metric.Meter
	Tracer trace.Tracer
}

// Provider owns the telemetry of a process.
type Provider struct {
	logger   *slog.Logger
	version  string
	registry *prometheus.Registry
	meters   *sdkmetric.MeterProvider
	tracers  trace.TracerProvider
	closers  []func(context.Context) error
}

// Config names the process to the outside.
type Config struct {
	Service string // service.name, unless OTEL_SERVICE_NAME says otherwise
	Version string
	Node    string // service.instance.id
	Logger  *slog.Logger
	// Env reads a variable; os.LookupEnv except in tests. It decides what is exported; the exporters themselves read
	// their OTEL_EXPORTER_OTLP_* variables from the process.
	Env func(string) (string, bool)
}

// Open sets up metrics and, where OTEL_* asks for it, exporters. It does not wait for a collector.
func Open(ctx context.Context, cfg Config) (*Provider, error) {
	want, err := exportersOf(cfg.Env)
	if err != nil {
		return nil, err
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", cfg.Service),
			attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Node),
			attribute.String("service.namespace", "weir"),
		),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fault.Wrap(err, fault.ConfInvalid, "OTEL_RESOURCE_ATTRIBUTES", "the attributes cannot be read")
	}
	p := &Provider{logger: cfg.Logger, version: cfg.Version, registry: prometheus.NewRegistry(), tracers: tracenoop.NewTracerProvider()}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprom.New(otelprom.WithRegisterer(p.registry), otelprom.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("open the metrics reader: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(reader)}
	if want.metrics {
		e, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, exporterFault(err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&metricExporter{Exporter: e, quiet: newQuiet(cfg.Logger)})))
	}
	p.meters = sdkmetric.NewMeterProvider(options...)
	p.closers = append(p.closers, p.meters.Shutdown)
	if want.traces {
		e, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, errors.Join(exporterFault(err), p.Close(ctx))
		}
		tp := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(&spanExporter{SpanExporter: e, quiet: newQuiet(cfg.Logger)}))
		p.tracers = tp
		p.closers = append(p.closers, tp.Shutdown)
	}
	return p, nil
}

// exporters is what OTEL_* asks for.
type exporters struct{ metrics, traces bool }

// exportersOf follows the specification with one difference: without an endpoint nothing is exported, so that a process
// which nobody configured does not try to reach a collector on its own host.
func exportersOf(env func(string) (string, bool)) (exporters, error) {
	get := func(name string) string {
		v, _ := env(name)
		return strings.TrimSpace(v)
	}
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return exporters{}, nil
	}
	signal := func(name string, known ...string) (bool, error) {
		choice := get("OTEL_" + name + "_EXPORTER")
		if choice != "" && !slices.Contains(append(known, "otlp", "none"), choice) {
			e := fault.New(fault.ConfInvalid, "environment", "")
			e.Problems = []fault.Problem{{
				Path: "OTEL_" + name + "_EXPORTER", What: "this exporter is not supported", Allowed: append([]string{"otlp", "none"}, known...),
			}}
			return false, e
		}
		endpoint := get("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || get("OTEL_EXPORTER_OTLP_"+name+"_ENDPOINT") != ""
		return choice == "otlp" || choice == "" && endpoint, nil
	}
	var want exporters
	var err1, err2 error
	want.metrics, err1 = signal("METRICS", "prometheus")
	want.traces, err2 = signal("TRACES")
	return want, errors.Join(err1, err2)
}

func exporterFault(err error) error {
	return fault.Wrap(err, fault.ConfInvalid, "OTEL_EXPORTER_OTLP_*", "the exporter cannot be set up with these settings")
}

// For returns the telemetry of one service of the process.
func (p *Provider) For(service, node string) Telemetry {
	scope := "weir/" + service
	return Telemetry{
		Logger: p.logger.With(KeyService, service, KeyNode, node),
		Meter:  p.meters.Meter(scope, metric.WithInstrumentationVersion(p.version)),
		Tracer: p.tracers.Tracer(scope, trace.WithInstrumentationVersion(p.version)),
	}
}

// Handler serves all metrics of the process in Prometheus form.
func (p *Provider) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Close sends what is left, at most until ctx ends.
func (p *Provider) Close(ctx context.Context) error {
	var errs []error
	for _, c := range p.closers {
		errs = append(errs, c(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close telemetry: %w", err)
	}
	return nil
}

func noopMeter() metric.Meter  { return metricnoop.NewMeterProvider().Meter("") }
func noopTracer() trace.Tracer { return tracenoop.NewTracerProvider().Tracer("") }
