package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/stage"
)

// While an epoch is being published, a mark follows every markBytes or markEvents: a stream that drops old messages keeps one.
const (
	markBytes  = 16 << 20
	markEvents = 10_000
)

// publication is one epoch on its way into the stream.
type publication struct {
	c      *committer
	commit sink.Commit
	encode encoder

	done   uint64 // events before it are there
	index  uint64 // of the next event
	rows   uint64
	dead   uint64
	stored map[sink.LetterID]bool
	places map[rows.TableID]int // rows seen of each table
	tables map[rows.TableID]*table

	event  event
	header bus.Header
	labels labels
	data   []byte
	events int // since the last mark
	bytes  int
}

// labels are the values of the headers that change; the header refers to them.
type labels struct{ epoch, index, seq [1]string }

func (c *committer) newPublication(ctx context.Context, commit sink.Commit) (*publication, error) {
	p := &publication{
		c: c, commit: commit, encode: encoderOf(c.target.Format),
		places: make(map[rows.TableID]int), tables: make(map[rows.TableID]*table),
	}
	if open := c.now.Open; open.Epoch == commit.Ref.Epoch {
		p.done = open.Next
	}
	if c.cfg.Letters != nil {
		ids, err := c.cfg.Letters.Stored(ctx, commit.Ref.Epoch)
		if err != nil {
			return nil, elsewhere{err}
		}
		p.stored, p.dead = make(map[sink.LetterID]bool, len(ids)), uint64(len(ids))
		for _, id := range ids {
			p.stored[id] = true
		}
	}
	p.event = event{
		job: c.cfg.Job, life: c.cfg.Life, sink: c.cfg.Sink.Name, epoch: commit.Ref.Epoch, prefix: c.target.Prefix,
	}
	p.labels.epoch[0] = commit.Ref.Epoch.String()
	p.header = bus.Header{
		headerJob: {c.cfg.Job}, headerLife: {c.cfg.Life}, headerFence: {c.cfg.Fence.String()},
		headerEpoch: p.labels.epoch[:], headerIndex: p.labels.index[:], headerSeq: p.labels.seq[:],
		headerType: {contentTypeOf(c.target.Format)},
	}
	return p, nil
}

// mark is a mark of this attempt with what was committed before.
func (p *publication) mark(kind markKind) mark {
	m := p.c.now.mark
	m.Kind, m.Life, m.Fence = kind, p.c.cfg.Life, p.c.cfg.Fence
	return m
}

// run sends every event of the epoch that the stream does not have.
func (p *publication) run(ctx context.Context) error {
	work, err := stage.NewWork(p.commit)
	if err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	pieces := work.Open(reading, p.c.cfg.Store, p.c.codec)
	defer func() {
		cancel()
		for range pieces { // the codec is free when it is closed
		}
	}()
	for piece := range pieces {
		if piece.Err != nil {
			return elsewhere{piece.Err}
		}
		for _, part := range piece.Parts {
			if err := p.batch(ctx, part.Rows); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// batch sends the events of a batch. A row before an update belongs to the event of the row after it, which is the next.
func (p *publication) batch(ctx context.Context, b *rows.Batch) error {
	id := b.Schema().Table()
	t, err := p.table(b.Schema())
	if err != nil {
		return err
	}
	e := &p.event
	e.table, e.batch, e.before = t, b, noRow
	for i := range b.NumRows() {
		place := p.places[id]
		p.places[id]++
		p.rows++
		if b.Op(i) == rows.OpUpdateBefore {
			e.before = i
			continue
		}
		e.row, e.index = i, p.index
		if p.index >= p.done && !p.stored[sink.LetterID{Table: id, Epoch: p.commit.Ref.Epoch, Index: place}] {
			if err := p.send(ctx, place); err != nil {
				return err
			}
		}
		e.before = noRow
		p.index++
	}
	return nil
}

func (p *publication) send(ctx context.Context, place int) error {
	e := &p.event
	p.data = p.encode(p.data[:0], e)
	p.labels.index[0] = strconv.FormatUint(e.index, 10)
	p.labels.seq[0] = strconv.FormatUint(e.batch.Seq(e.row), 10)
	if !p.c.outlet.Fits(p.header, len(p.data)) {
		return p.tooBig(ctx, place)
	}
	if err := p.c.out.Put(ctx, e.table.subject, p.header, p.data); err != nil {
		return err
	}
	p.events++
	if p.bytes += len(p.data); p.bytes < markBytes && p.events < markEvents {
		return nil
	}
	p.events, p.bytes = 0, 0
	m := p.mark(under)
	m.Open = progress{Epoch: p.commit.Ref.Epoch, Next: e.index + 1}
	return p.c.put(ctx, p.c.out, m)
}

// tooBig puts a row aside whose event no setting of this moment lets through, or stops there.
func (p *publication) tooBig(ctx context.Context, place int) error {
	e := &p.event
	err := fault.New(fault.SinkEventTooBig, p.c.where+", table "+string(e.batch.Schema().Table()), fmt.Sprintf(
		"an event of epoch %s has %d bytes, stream %s takes %d with the header", e.epoch, len(p.data), p.c.target.Stream, p.c.outlet.MaxEvent()),
		"stream", p.c.target.Stream, "job", p.c.cfg.Job)
	if p.c.cfg.Letters == nil {
		return err
	}
	codec, cerr := stage.NewCodec() // the other one is reading ahead
	if cerr != nil {
		return cerr
	}
	g := stage.Group{Kind: stage.Change, Batches: []*rows.Batch{e.batch.Slice(e.row, e.row+1)}, First: []int{place}, N: 1}
	l, lerr := g.Describe(sink.Letter{
		LetterID: sink.LetterID{Epoch: p.commit.Ref.Epoch}, Job: p.c.cfg.Job, Life: p.c.cfg.Life, Sink: p.c.cfg.Sink.Name,
		Positions: p.commit.Positions, Fault: fault.Of(err),
	}, e.batch.Schema(), codec, time.Now())
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	if perr := p.c.cfg.Letters.Put(ctx, l); perr != nil {
		return elsewhere{perr}
	}
	p.stored[l.LetterID] = true
	p.dead++
	return nil
}
