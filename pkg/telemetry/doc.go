// Package telemetry gives a service its logger, meter and tracer.
//
// Role. [Open] makes one [Provider] per process; [Provider.For] hands each service its own [Telemetry]. Metrics are always
// readable in Prometheus form ([Provider.Handler]); OTLP export of metrics and traces is configured by the standard OTEL_*
// variables alone and off without them. Trace context travels in message headers ([Inject], [Extract]).
//
// Invariants.
//   - T1: nothing here reads or sets a global of OpenTelemetry, so several services of one process keep apart.
//   - T2: a logger never shows a secret: a fault is logged by its fields, its cause is not.
//   - T3: a collector that is away never fails or blocks the work; the loss is logged as a warning, at most once a minute.
//   - T4: attributes of metrics are bounded: job, source, sink, vertex, direction, reason, code; never
//     tables, keys, subjects or positions.
//
// Failure. Telemetry may be lost in a crash; nothing rests on it.
//
// Source. OpenTelemetry specification, environment variables; W3C Trace Context level 1.
package telemetry
