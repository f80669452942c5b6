package postgres

import (
	"context"
	"slices"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/stage"
)

// replay applies a piece again after a unique violation: deletes first, then its rows in the order of the source, in ever
// smaller groups where they clash. Rows whose value another row has to give up first wait for the next round; rows that
// wait for each other in a ring are taken out and put in again.
func (a *apply) replay(ctx context.Context, t *target, parts []part) error {
	var waiting []part
	for i := range parts {
		// What was copied after the savepoint is gone, and what is kept in memory is all that is needed.
		p := part{kind: parts[i].kind, absent: parts[i].absent, batches: parts[i].batches, n: parts[i].n}
		if p.kind == stage.Delete {
			if err := a.part(ctx, t, &p); err != nil {
				return err
			}
			continue
		}
		if p.kind == stage.Fresh {
			p.kind = stage.Upsert // staged, and inserted row by row where the key is new
		}
		for _, b := range p.batches {
			waiting = append(waiting, part{kind: p.kind, absent: p.absent, batches: []*rows.Batch{b}, n: b.NumRows()})
		}
	}
	slices.SortStableFunc(waiting, func(x, y part) int { return compareSeq(x.batches[0].Seq(0), y.batches[0].Seq(0)) })
	for len(waiting) > 0 {
		var clashed []part
		var last error
		before := count(waiting)
		for _, p := range waiting {
			rest, err := a.settle(ctx, t, p)
			if len(rest) == 0 && err != nil {
				return err
			}
			if err != nil {
				last = err
			}
			clashed = append(clashed, rest...)
		}
		if count(clashed) == before {
			if t.cascades {
				return last
			}
			return a.reinsert(ctx, t, clashed)
		}
		waiting = clashed
	}
	return nil
}

func compareSeq(x, y uint64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func count(parts []part) int {
	n := 0
	for _, p := range parts {
		n += p.n
	}
	return n
}

// settle applies as many rows of a part as the constraints let in and returns the others with the violation they met. An
// error without rows is another one and ends the commit.
func (a *apply) settle(ctx context.Context, t *target, p part) ([]part, error) {
	p.staging = ""
	err := a.savepoint(ctx, func() error { return a.part(ctx, t, &p) })
	if !hasState(err, uniqueViolation) && !hasState(err, exclusionViolation) {
		return nil, err
	}
	p.staging = ""
	if p.n == 1 {
		return []part{p}, err
	}
	b, half := p.batches[0], p.n/2
	var rest []part
	for _, s := range []*rows.Batch{b.Slice(0, half), b.Slice(half, p.n)} {
		clashed, err := a.settle(ctx, t, part{kind: p.kind, absent: p.absent, batches: []*rows.Batch{s}, n: s.NumRows()})
		if err != nil && len(clashed) == 0 {
			return nil, err
		}
		rest = append(rest, clashed...)
	}
	if len(rest) == 0 {
		return nil, nil
	}
	return rest, err
}

// reinsert takes whole rows out before it puts their new state in, which breaks any ring of unique values. Updates that
// lack columns cannot be taken out; they are tried last and their violation stands.
func (a *apply) reinsert(ctx context.Context, t *target, parts []part) error {
	for _, p := range parts {
		if p.kind == stage.Upsert {
			gone := part{kind: stage.Delete, batches: p.batches, n: p.n}
			if err := a.part(ctx, t, &gone); err != nil {
				return err
			}
		}
	}
	for _, p := range parts {
		p.staging = ""
		if err := a.part(ctx, t, &p); err != nil {
			return err
		}
	}
	return nil
}
