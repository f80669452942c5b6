package nats

import (
	"context"
	"errors"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
)

// elsewhere is an error of the mesh: its staged pieces and dead letters are not at the target.
type elsewhere struct{ error }

// isGone says that the stream is not there.
func isGone(err error) bool { return errors.Is(err, bus.ErrNotFound) }

// translate gives an error of the bus the meaning it has at a target.
func (c *committer) translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if other, ok := errors.AsType[elsewhere](err); ok {
		return other.error
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	switch code := fault.CodeOf(err); {
	case code == fault.BusAuth:
		return fault.Wrap(err, fault.SinkWrongPassword, c.where, err.Error(), "where", c.where)
	case code == fault.BusUnreachable:
		return c.down(err)
	case errors.Is(err, bus.ErrShape), errors.Is(err, bus.ErrNotFound), errors.Is(err, bus.ErrNoJetStream):
		return fault.Wrap(err, fault.SinkStreamUnfit, c.where, err.Error(), "stream", c.target.Stream, "job", c.cfg.Job)
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, bus.ErrDenied):
		return fault.Wrap(err, fault.BusRights, c.where, err.Error(), "subject", c.target.Prefix+".>")
	case errors.Is(err, bus.ErrFull):
		return fault.Wrap(err, fault.SinkDisk, c.where, err.Error(), "where", c.where)
	case errors.Is(err, bus.ErrConflict):
		return fault.Wrap(err, fault.SinkBusy, c.where, err.Error())
	case errors.Is(err, bus.ErrUnknown), errors.Is(err, bus.ErrDisconnected), errors.Is(err, bus.ErrNoResponders), errors.Is(err, bus.ErrStalled):
		return c.down(err)
	}
	return err
}

func (c *committer) down(err error) error {
	return fault.Wrap(err, fault.SinkUnreachable, c.where, err.Error(), "where", c.where)
}
