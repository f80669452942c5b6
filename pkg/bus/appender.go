package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of one batch. A server takes 1000 messages unless it is told otherwise (max_batch_size), and makes a file store for each batch
// of a stream without replicas: half as many messages would be half as fast.
const (
	batchMessages = 1000
	batchBytes    = 4 << 20
)

// Headers of an atomic batch.
const (
	hdrBatchID     = "Nats-Batch-Id"
	hdrBatchSeq    = "Nats-Batch-Sequence"
	hdrBatchCommit = "Nats-Batch-Commit"
)

// Error numbers of atomic batches.
const (
	codeBatchDisabled   = 10174
	codeBatchIncomplete = 10176
	codeBatchTooLarge   = 10199
	codeBatchTooMany    = 10210
)

// Appender writes to an outlet in atomic batches, one after the other. Each names the sequence that it follows in the whole
// stream, so of several appenders at most one goes on.
//
// Two batches are never under way at once. With two, the second's place may be free although the first was refused: whoever
// came between has moved the sequence on to where the second expects it. A batch is at its place or nowhere.
//
// Any error ends it. Of the batch under way the stream has all or nothing; [Outlet.Tail] tells which. It is owned by one
// goroutine.
type Appender struct {
	o       *Outlet
	l       *link
	release func()

	batch []*nats.Msg
	size  int64
	last  uint64 // of what was handed to the server
	// under is the result of the batch under way; nil when there is none.
	under chan error
	err   error
}

// hdrTTL is the age at which the server removes a message; neverExpires exempts it from the age of its stream.
const (
	hdrTTL       = "Nats-TTL"
	neverExpires = "never"
)

// Append opens an appender whose first message follows the one with sequence after.
func (o *Outlet) Append(ctx context.Context, after uint64) (*Appender, error) {
	l, release, err := o.c.take(ctx, &o.c.sending, publishersPerLane, "data out")
	if err != nil {
		return nil, fmt.Errorf("append to stream %s: %w", o.cfg.Stream, err)
	}
	return &Appender{o: o, l: l, release: release, last: after}, nil
}

// Put adds a message to the open batch and sends what is full; it waits while another batch is under way. Header and data may
// be used again when it returns; ctx has to live until Flush returns or the appender is closed. [ErrConflict], here or from
// Flush: somebody else has written. [ErrFull]: the stream has no room.
func (a *Appender) Put(ctx context.Context, subject string, h Header, data []byte) error {
	return a.add(ctx, &nats.Msg{Subject: subject, Header: copied(h), Data: bytes.Clone(data)})
}

// PutLasting is Put of a message that outlives the age of the stream, where the stream has one.
func (a *Appender) PutLasting(ctx context.Context, subject string, h Header, data []byte) error {
	m := &nats.Msg{Subject: subject, Header: copied(h), Data: bytes.Clone(data)}
	if a.o.maxAge > 0 {
		m.Header.Set(hdrTTL, neverExpires)
	}
	return a.add(ctx, m)
}

// copied copies a header whose values may change; their lists are of one.
func copied(h Header) nats.Header {
	c := make(nats.Header, len(h)+4)
	values := make([]string, 0, len(h))
	for k, v := range h {
		values = append(values, v...)
		c[k] = values[len(values)-len(v) : len(values) : len(values)]
	}
	return c
}

func (a *Appender) add(ctx context.Context, m *nats.Msg) error {
	if a.err != nil {
		return a.err
	}
	size := int64(len(m.Data)) + headerSize(Header(m.Header))
	if len(a.batch) > 0 && a.size+size > batchBytes {
		if err := a.send(ctx); err != nil {
			return err
		}
	}
	a.batch, a.size = append(a.batch, m), a.size+size
	if len(a.batch) == batchMessages {
		return a.send(ctx)
	}
	return nil
}

// send puts the open batch under way, behind the one before it.
func (a *Appender) send(ctx context.Context) error {
	if err := a.wait(); err != nil || len(a.batch) == 0 {
		return err
	}
	batch, after := a.batch, a.last
	a.batch, a.size, a.last = nil, 0, a.last+uint64(len(a.batch))
	result := make(chan error, 1)
	a.under = result
	go func() { result <- a.l.storeBatch(ctx, batch, after) }()
	return nil
}

// wait waits for the batch under way, which ends with the ctx that it was sent with.
func (a *Appender) wait() error {
	if a.under != nil && a.err == nil {
		if err := <-a.under; err != nil {
			a.err = fmt.Errorf("append to stream %s: %w", a.o.cfg.Stream, err)
		}
		a.under = nil
	}
	return a.err
}

// Flush waits until everything is stored and returns the sequence of the newest message.
func (a *Appender) Flush(ctx context.Context) (uint64, error) {
	if err := a.send(ctx); err != nil {
		return 0, err
	}
	return a.last, a.wait()
}

// Close frees the appender. A batch that is under way is waited for, whatever becomes of it: it ends with its ctx, the
// connection, or a time-out.
func (a *Appender) Close() {
	_ = a.wait() // whoever wants to know has asked Flush
	if a.err == nil {
		a.err = ErrClosed
	}
	a.release()
}

// storeBatch stores messages all or none, directly behind a sequence of the stream.
func (l *link) storeBatch(ctx context.Context, batch []*nats.Msg, after uint64) error {
	s, ctx, cancel, err := l.limitTo(ctx, partTimeout)
	if err != nil {
		return err
	}
	defer cancel()
	batch[0].Header.Set(hdrExpectStream, strconv.FormatUint(after, 10))
	id := s.nc.NewInbox()
	id = id[len(id)-22:] // its random part
	for n, m := range batch {
		if len(batch) > 1 {
			m.Header.Set(hdrBatchID, id)
			m.Header.Set(hdrBatchSeq, strconv.Itoa(n+1))
		}
		if n < len(batch)-1 {
			if err := s.publish(m); err != nil {
				return err
			}
		}
	}
	last := batch[len(batch)-1]
	if len(batch) > 1 {
		last.Header.Set(hdrBatchCommit, "1")
	}
	r, err := s.nc.RequestMsgWithContext(ctx, last)
	if err != nil {
		return foreign(err)
	}
	seq, err := parsePubAck(r)
	if err != nil {
		return batchError(err)
	}
	if want := after + uint64(len(batch)); seq != want {
		return fmt.Errorf("%w: the last of %d messages behind %d is %d", ErrConflict, len(batch), after, seq)
	}
	return nil
}

// batchError tells what refusals of batches mean. One that is incomplete lost its beginning with a server or a leader, and
// nothing of it is stored.
func batchError(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return err
	}
	switch int(api.ErrorCode) {
	case codeBatchDisabled, codeBatchTooLarge:
		return fmt.Errorf("%w: %w", ErrShape, err)
	case codeBatchIncomplete:
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case codeBatchTooMany:
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
