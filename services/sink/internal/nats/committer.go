package nats

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// committer publishes epochs. It is owned by one goroutine.
type committer struct {
	cfg    sink.Config
	target *spec.NATSSink
	where  string // sinks.events
	marks  string
	codec  *stage.Codec

	conn   *bus.Conn
	outlet *bus.Outlet
	// now is where the stream stands, as far as this attempt knows; nil when it has to be read. out appends behind it.
	now *standing
	out *bus.Appender
}

// tries is how often a write that met another one begins anew from what the stream says. With a claim there are two
// writers at most, of which one is refused for good; more is somebody else's doing.
const tries = 5

// Claim writes a mark with this attempt's fence behind whatever is there.
func (c *committer) Claim(ctx context.Context) (job.LedgerRow, error) {
	var err error
	for range tries {
		var found core.Row
		if found, err = c.claim(ctx); err == nil {
			return job.LedgerRow{Life: c.cfg.Life, Ref: found.Ref, Fence: found.Fence}, nil
		}
		c.forget()
		if !errors.Is(err, bus.ErrConflict) {
			break
		}
	}
	if errors.Is(err, bus.ErrConflict) {
		return job.LedgerRow{}, fault.Wrap(err, fault.SinkBusy, c.where, "others write to stream "+c.target.Stream)
	}
	return job.LedgerRow{}, c.translate(ctx, err)
}

func (c *committer) claim(ctx context.Context) (core.Row, error) {
	c.forget()
	s, err := c.stand(ctx)
	if err != nil {
		return core.Row{}, err
	}
	found := s.row()
	if err := c.who().MayTake(found); err != nil {
		return core.Row{}, err
	}
	out, err := c.outlet.Append(ctx, s.seq)
	if err != nil {
		return core.Row{}, err
	}
	c.out = out
	s.Kind, s.Life, s.Fence = claimed, c.cfg.Life, c.cfg.Fence
	if err := c.put(ctx, out, s.mark); err != nil {
		return core.Row{}, err
	}
	if s.seq, err = out.Flush(ctx); err != nil {
		return core.Row{}, err
	}
	c.now = &s
	return found, nil
}

// forget drops what the attempt knows of the stream: something of it may not be so any more.
func (c *committer) forget() {
	if c.out != nil {
		c.out.Close()
	}
	c.out, c.now = nil, nil
}

// who holds claims and commits up to the stream's mark.
func (c *committer) who() core.Claimant {
	return core.Claimant{Where: c.where, Ledger: "stream " + c.target.Stream, Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence}
}

// Commit publishes what the stream does not have of an epoch, and its mark.
func (c *committer) Commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	var err error
	for range tries {
		var result sink.Result
		if result, err = c.commit(ctx, commit); err == nil {
			return result, nil
		}
		c.forget()
		if !errors.Is(err, bus.ErrConflict) {
			return sink.Result{}, c.translate(ctx, err)
		}
	}
	return sink.Result{}, fault.Wrap(err, fault.SinkBusy, c.where, "others write to stream "+c.target.Stream)
}

func (c *committer) commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	if c.now == nil {
		s, err := c.stand(ctx)
		if err != nil {
			return sink.Result{}, err
		}
		c.now = &s
	}
	if done, err := c.who().Has(c.now.row(), commit.Ref, commit.Prev); done || err != nil {
		return sink.Result{}, err
	}
	if open := c.now.Open; open.Epoch != 0 && open.Epoch != commit.Ref.Epoch {
		return sink.Result{}, fault.New(fault.JobLedgerDiverged, c.where, fmt.Sprintf(
			"stream %s holds %d events of epoch %s, which is not complete; the commit is of epoch %s", c.target.Stream,
			open.Next, open.Epoch, commit.Ref.Epoch), "job", c.cfg.Job)
	}
	if c.out == nil {
		out, err := c.outlet.Append(ctx, c.now.seq)
		if err != nil {
			return sink.Result{}, err
		}
		c.out = out
	}
	p, err := c.newPublication(ctx, commit)
	if err != nil {
		return sink.Result{}, err
	}
	if err := p.run(ctx); err != nil {
		return sink.Result{}, err
	}
	next := standing{mark: p.mark(committed)}
	next.Ref, next.Prev, next.Open, next.Positions = commit.Ref, commit.Prev, progress{}, commit.Positions
	next.Events, next.Rows, next.Dead = p.index, p.rows-p.dead, p.dead
	if err := c.put(ctx, c.out, next.mark); err != nil {
		return sink.Result{}, err
	}
	if next.seq, err = c.out.Flush(ctx); err != nil {
		return sink.Result{}, err
	}
	c.now = &next
	return sink.Result{Applied: true, Rows: next.Rows, Dead: next.Dead}, nil
}

// Close ends the connection to the target.
func (c *committer) Close() error {
	c.forget()
	c.conn.Close()
	return nil
}
