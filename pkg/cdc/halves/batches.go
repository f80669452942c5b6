package halves

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
)

const (
	// maxBatchRows ends a batch however small its rows are.
	maxBatchRows = 8192
	// linger is how long a row waits for others to share its batch.
	linger = 5 * time.Millisecond
)

// Gathering is the rows of one table and schema version on their way into a batch.
type Gathering struct {
	*rows.Builder // its Flush is for Batches

	unseen int // bytes at the source since the last look at the builder
	since  time.Time
}

// NewGathering begins with no rows.
func NewGathering(s *rows.Schema) *Gathering { return &Gathering{Builder: rows.NewBuilder(s)} }

// Batches ends the batches of many tables. It is owned by one goroutine.
type Batches struct {
	// At is the position behind everything that was gathered so far.
	At func() position.Position
	// Emitted, if set, is told what has left.
	Emitted func(ctx context.Context, b *rows.Batch)
	// Broken, if set, makes the error of rows that fit no batch one that says where they are from.
	Broken func(err error) error

	target  int64
	look    int // bytes at the source after which the size of a builder is asked
	pending []*Gathering
}

// NewBatches makes batches of about target bytes.
func NewBatches(target int64, at func() position.Position) *Batches {
	return &Batches{At: at, target: target, look: int(max(target/8, 1024))}
}

// Pending reports whether rows wait in a builder.
func (p *Batches) Pending() bool { return len(p.pending) > 0 }

// Late fires when the oldest row has waited long enough; nil when none waits. The caller stops the timer.
func (p *Batches) Late() *time.Timer {
	if len(p.pending) == 0 {
		return nil
	}
	return time.NewTimer(time.Until(p.pending[0].since.Add(linger)))
}

// Grown ends the batch of a table that has become large enough, after a row of so many bytes at the source. The size of a
// builder costs a look at every column, so it is asked only when it may have changed much.
func (p *Batches) Grown(ctx context.Context, out source.Output, g *Gathering, size int) error {
	n := g.Rows()
	if g.since.IsZero() {
		g.since = time.Now()
		p.pending = append(p.pending, g)
	}
	g.unseen += size + 32
	if n < maxBatchRows && g.unseen < p.look {
		return nil
	}
	g.unseen = 0
	if n < maxBatchRows && int64(g.Bytes()) < p.target {
		return nil
	}
	return p.Flush(ctx, out, g)
}

// FlushOld ends the batches that have waited long enough.
func (p *Batches) FlushOld(ctx context.Context, out source.Output) error {
	now := time.Now()
	for len(p.pending) > 0 && now.Sub(p.pending[0].since) >= linger {
		if err := p.Flush(ctx, out, p.pending[0]); err != nil {
			return err
		}
	}
	return nil
}

// FlushAll ends every batch.
func (p *Batches) FlushAll(ctx context.Context, out source.Output) error {
	for len(p.pending) > 0 {
		if err := p.Flush(ctx, out, p.pending[0]); err != nil {
			return err
		}
	}
	return nil
}

// Flush emits the rows of one table.
func (p *Batches) Flush(ctx context.Context, out source.Output, g *Gathering) error {
	p.pending = slices.DeleteFunc(p.pending, func(x *Gathering) bool { return x == g })
	g.since, g.unseen = time.Time{}, 0
	if g.Rows() == 0 {
		return nil
	}
	b, err := g.Flush()
	if err != nil {
		if p.Broken != nil {
			err = p.Broken(err)
		}
		return err
	}
	if err := out.Emit(ctx, *b, p.At()); err != nil {
		return fmt.Errorf("emit rows of %s: %w", g.Schema().Table(), err)
	}
	if p.Emitted != nil {
		p.Emitted(ctx, b)
	}
	return nil
}
