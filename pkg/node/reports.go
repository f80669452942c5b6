package node

import (
	"context"
	"encoding/json"
	"time"

	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/telemetry"
)

// report publishes the reports when they are due.
func (n *node) report(ctx context.Context) {
	now := time.Now()
	due := now.Sub(n.moved) < busy || now.Sub(n.published) > calmReports-rereadEvery/2
	if due && !n.cfg.Silent {
		n.published = now
		n.publish(ctx)
	}
}

// publish samples the reports of all subtasks and stores them as one batch, beside the loop. Subtasks swap their reports
// atomically, so this never waits for a row or an epoch.
func (n *node) publish(ctx context.Context) {
	b := report.Batch{
		Version: report.BatchVersion, Node: n.me.Node, Incarnation: n.me.Incarnation, At: time.Now().UTC(),
		Reports: []report.Envelope{},
	}
	for _, s := range n.jobs {
		for _, t := range s.subtasks {
			if r, ok := t.Report(); ok {
				b.Reports = append(b.Reports, r)
			}
		}
	}
	n.work.Go(func() {
		body, err := json.Marshal(b)
		if err == nil {
			ctx, cancel := context.WithTimeout(ctx, rereadEvery)
			defer cancel()
			err = n.conn.PublishReport(ctx, n.me.Node, body)
		}
		if err != nil {
			n.log.DebugContext(ctx, "reports not published", telemetry.KeyError, err)
		}
	})
}
