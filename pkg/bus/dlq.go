package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// EnsureDLQ makes the stream of a job's dead letters. It refuses new letters when maxBytes are reached (zero: no bound),
// so that a job stops rather than loses one.
func (c *Conn) EnsureDLQ(ctx context.Context, job string, maxBytes int64, replicas int) error {
	return c.ensureStream(ctx, jetstream.StreamConfig{
		Name: DLQStream(job), Subjects: []string{DLQFilter(job)},
		Description: "Weir: rows of job " + job + " that can never apply",
		Storage:     jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxBytes: maxBytes,
		Replicas: max(replicas, 1), AllowDirect: true, Metadata: map[string]string{metaJob: job},
	})
}

// PutDeadLetter stores a letter under a subject of [DLQSubject]. It is create-only: a commit that is repeated finds its
// letters there, which is success.
func (c *Conn) PutDeadLetter(ctx context.Context, subject string, h Header, data []byte) error {
	m := &nats.Msg{Subject: subject, Header: nats.Header{hdrExpectLast: {"0"}}, Data: data}
	maps.Copy(m.Header, h)
	if _, err := c.ctl.store(ctx, m); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("put dead letter %s: %w", subject, c.denied.explain(err, subject))
	}
	return nil
}

// WatchDeadLetters delivers the dead letters of a job from the oldest on, then each new one; Entry.Key is the subject.
func (c *Conn) WatchDeadLetters(ctx context.Context, job string) *Watch {
	return c.watch(ctx, watchSpec{stream: DLQStream(job), filter: DLQFilter(job)})
}
