package nats

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/sink"
)

// Doctor looks at the target as a committer's start would and changes nothing: the connection, the stream, whose events it
// holds. livesKnown says that cfg.Life is the job's, empty for a job that is none yet. The error is that of ctx, or a defect.
func Doctor(ctx context.Context, cfg sink.Config, livesKnown bool) ([]preflight.Finding, error) {
	target, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	c := &committer{cfg: cfg, target: target, where: "sinks." + cfg.Sink.Name, marks: markSubject(target.Prefix)}
	var found []preflight.Finding
	note := func(check, what string, err error) bool {
		if err != nil {
			found = append(found, preflight.Failed(c.where, check, c.translate(ctx, err), nil))
			return false
		}
		found = append(found, preflight.Finding{Group: c.where, Check: check, Status: preflight.OK, Found: what})
		return true
	}
	if c.conn, err = connect(ctx, cfg, target); !note("connect", "the server answers", err) {
		return found, context.Cause(ctx)
	}
	defer c.conn.Close()
	c.outlet, err = c.conn.OpenOutlet(ctx, bus.OutletConfig{Stream: target.Stream, Prefix: target.Prefix})
	if isGone(err) && target.Create {
		note("stream", "stream "+target.Stream+" is not there and will be made", nil)
		return found, context.Cause(ctx)
	}
	if !note("stream", fmt.Sprintf("stream %s can hold the events of %s.>", target.Stream, target.Prefix), err) {
		return found, context.Cause(ctx)
	}
	s, err := c.stand(ctx)
	if err == nil && livesKnown && s.Life != "" && s.Life != cfg.Life {
		err = fault.New(fault.JobLedgerForeign, c.where, fmt.Sprintf("stream %s has life %s", target.Stream, s.Life), "job", cfg.Job)
	}
	what := "the stream is empty"
	if s.Life != "" {
		what = fmt.Sprintf("the newest epoch there is %s", s.Ref.Epoch)
	}
	note("ledger", what, err)
	return found, context.Cause(ctx)
}
