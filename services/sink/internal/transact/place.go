package transact

import (
	"context"
	"errors"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/stage"
)

// Place is where an error happened, for people: the sink's path in the spec and, where known, the rest.
type Place struct {
	Sink  string // sinks.warehouse
	Table string // shop.orders, or empty
	Job   string
	Role  string // that the sink logs in as
}

func (p Place) String() string {
	if p.Table == "" {
		return p.Sink
	}
	return p.Sink + ", table " + p.Table
}

// Unreachable is the error of a connection: refused, reset, timed out, closed in mid-sentence. It quotes the innermost text
// only; those around it may have host, user and database.
func (p Place) Unreachable(err error) error {
	inner := err
	for next := err; next != nil; next = errors.Unwrap(next) {
		inner = next
	}
	return fault.Wrap(err, fault.SinkUnreachable, p.Sink, inner.Error(), "where", p.Sink)
}

// Known returns the error to pass on for one that is not the target's own: the end of ctx, one that has its class already, or
// one of where letters are kept.
func Known(ctx context.Context, err error) (known error, ok bool) {
	if cause := context.Cause(ctx); cause != nil {
		return cause, true
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err, true
	}
	if other, ok := errors.AsType[stage.LettersError](err); ok {
		return other.Err, true
	}
	return nil, false
}
