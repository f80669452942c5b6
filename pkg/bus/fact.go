package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"weir.dev/weir/pkg/fence"
)

// PutFact stores what a subtask tells the coordinator under a subject of [AckSubject]; it replaces the last one there.
// Facts that are open are repeated each second by their owner, so a lost one needs no other care. [ErrNoResponders]
// while there is no such stream: somebody has yet to make it.
func (c *Conn) PutFact(ctx context.Context, subject string, h Header, data []byte) error {
	_, err := c.ctl.store(ctx, &nats.Msg{Subject: subject, Header: nats.Header(h), Data: data})
	if err != nil {
		return fmt.Errorf("put fact %s: %w", subject, c.denied.explain(err, subject))
	}
	return nil
}

// WatchFacts delivers the current facts of a job, or of all jobs for "*", then each new one. Entry.Key is the subject;
// [ParseAckSubject] takes it apart.
func (c *Conn) WatchFacts(ctx context.Context, job string) *Watch {
	return c.watch(ctx, watchSpec{stream: AckStream, filter: AckFilter(job), lastOnly: true})
}

// Facts reads the current facts of one attempt in one snapshot.
func (c *Conn) Facts(ctx context.Context, job string, f fence.Token) ([]Entry, error) {
	filter := AckFilterAttempt(job, f)
	es, err := c.lastMany(ctx, AckStream, "", []string{filter})
	if err != nil {
		return nil, fmt.Errorf("read facts %s: %w", filter, c.denied.explain(err, "$JS.API.DIRECT.GET."+AckStream))
	}
	return es, nil
}

// PurgeFacts removes the facts of one attempt that is over.
func (c *Conn) PurgeFacts(ctx context.Context, job string, f fence.Token) error {
	if _, err := c.ctl.purge(ctx, AckStream, AckFilterAttempt(job, f)); err != nil {
		return fmt.Errorf("purge facts %s: %w", AckFilterAttempt(job, f),
			c.denied.explain(err, "$JS.API.STREAM.PURGE."+AckStream))
	}
	return nil
}

// PublishReport stores a node's batched progress report; it replaces the node's last one.
func (c *Conn) PublishReport(ctx context.Context, node string, data []byte) error {
	if _, err := c.ctl.store(ctx, &nats.Msg{Subject: ReportSubject(node), Data: data}); err != nil {
		return fmt.Errorf("publish report of %s: %w", node, c.denied.explain(err, ReportSubject(node)))
	}
	return nil
}

// Reports reads the last report of every node that reported within the stream's age.
func (c *Conn) Reports(ctx context.Context) ([]Entry, error) {
	es, err := c.lastMany(ctx, ReportStream, "weir.report.", []string{"weir.report.*"})
	if err != nil {
		return nil, fmt.Errorf("read reports: %w", c.denied.explain(err, "$JS.API.DIRECT.GET."+ReportStream))
	}
	return es, nil
}

// WatchReports delivers the last report of each node, then each new one; Entry.Key is the escaped node name.
func (c *Conn) WatchReports(ctx context.Context) *Watch {
	return c.watch(ctx, watchSpec{stream: ReportStream, filter: "weir.report.*", prefix: "weir.report.", lastOnly: true})
}
