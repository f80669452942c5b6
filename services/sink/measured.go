package sink

import (
	"context"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
)

// measured reports what a connector's committers do.
type measured struct {
	sink.Connector
	metrics *metrics
}

// OpenCommitter opens a committer whose claims and commits are measured.
func (c measured) OpenCommitter(ctx context.Context, cfg sink.Config) (sink.Committer, error) {
	inner, err := c.Connector.OpenCommitter(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &measuredCommitter{Committer: inner, name: cfg.Sink.Name, metrics: c.metrics}, nil
}

type measuredCommitter struct {
	sink.Committer
	name    string
	metrics *metrics
}

func (c *measuredCommitter) Claim(ctx context.Context) (job.LedgerRow, error) {
	row, err := c.Committer.Claim(ctx)
	if err != nil {
		c.metrics.failure(ctx, c.name, err)
	}
	return row, err
}

func (c *measuredCommitter) Commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	start := time.Now()
	r, err := c.Committer.Commit(ctx, commit)
	c.metrics.committed(ctx, c.name, time.Since(start), r, err)
	return r, err
}
