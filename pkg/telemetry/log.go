package telemetry

import (
	"errors"
	"io"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/fault"
)

// Format is how log records are written.
type Format string

// The formats. Auto is text on a terminal and JSON otherwise.
const (
	FormatAuto Format = "auto"
	FormatText Format = "text"
	FormatJSON Format = "json"
)

// NewLogger returns a logger which writes to w from level upwards. Attributes that hold an error are written by
// [ErrorValue] (T2).
func NewLogger(w io.Writer, format Format, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = ErrorValue(err)
		}
		return a
	}}
	if format == FormatJSON || (format != FormatText && !isTerminal(w)) {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// Err is the attribute of an error.
func Err(err error) slog.Attr { return slog.Attr{Key: KeyError, Value: ErrorValue(err)} }

// ErrorValue returns what a log shows of an error: the text, and for a fault its code, class, place and remedy.
func ErrorValue(err error) slog.Value {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return slog.StringValue(fault.Scrub(err.Error()))
	}
	attrs := []slog.Attr{
		slog.String("text", fault.Scrub(err.Error())),
		slog.String("code", string(e.Code)),
		slog.String("class", fault.ClassOf(err).String()),
	}
	if e.Where != "" {
		attrs = append(attrs, slog.String("where", e.Where))
	}
	return slog.GroupValue(append(attrs, slog.String("remedy", e.Remedy))...)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Tracer returns t, or one that records nothing for nil.
func Tracer(t trace.Tracer) trace.Tracer {
	if t == nil {
		return noopTracer()
	}
	return t
}

// Meter returns m, or one that records nothing for nil.
func Meter(m metric.Meter) metric.Meter {
	if m == nil {
		return noopMeter()
	}
	return m
}

// Discard returns a Telemetry that records nothing.
func Discard() Telemetry {
	return Telemetry{Logger: slog.New(slog.DiscardHandler), Meter: noopMeter(), Tracer: noopTracer()}
}

// With returns a copy whose logger carries further attributes.
func (t Telemetry) With(args ...any) Telemetry {
	t.Logger = t.Logger.With(args...)
	return t
}
