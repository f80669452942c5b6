package postgres

import (
	"context"
	"slices"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/stage"
)

// replay applies a piece again after a violation: deletes first, then its rows in the order of the source, in ever
// smaller groups where they clash. Rows whose value another row has to give up first wait for the next round; rows that
// wait for each other in a ring are taken out and put in again. A row that cannot be taken for itself is buried, where
// there are dead letters; the others are not applied one by one for it, but in halves.
func (a *apply) replay(ctx context.Context, t *target, parts []part) error {
	var waiting []part
	for i := range parts {
		// What was copied after the savepoint is gone, and what is kept in memory is all that is needed.
		p := part{kind: parts[i].kind, absent: parts[i].absent, batches: parts[i].batches, first: parts[i].first, n: parts[i].n}
		switch p.kind {
		case stage.Move: // before anything else of the piece, see complete
			moved, err := a.completed(ctx, t, p)
			if err != nil {
				return err
			}
			waiting = append(waiting, moved...)
			continue
		case stage.Delete:
			if err := a.remove(ctx, t, p); err != nil {
				return err
			}
			continue
		case stage.Fresh:
			p.kind = stage.Upsert // staged, and inserted row by row where the key is new
		default:
		}
		waiting = append(waiting, p.split()...)
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
			if a.dead != nil {
				return a.force(ctx, t, clashed)
			}
			if t.cascades {
				return last
			}
			return a.reinsert(ctx, t, clashed)
		}
		waiting = clashed
	}
	return nil
}

// split makes a part of each batch.
func (p part) split() []part {
	all := make([]part, len(p.batches))
	for i, b := range p.batches {
		all[i] = part{kind: p.kind, absent: p.absent, batches: []*rows.Batch{b}, first: p.first[i : i+1], n: b.NumRows()}
	}
	return all
}

// cut is some rows of a part of one batch.
func (p part) cut(from, to int) part {
	return part{
		kind: p.kind, absent: p.absent, batches: []*rows.Batch{p.batches[0].Slice(from, to)}, first: []int{p.first[0] + from}, n: to - from,
	}
}

func (p part) halves() [2]part { return [2]part{p.cut(0, p.n/2), p.cut(p.n/2, p.n)} }

// remove applies deletes.
func (a *apply) remove(ctx context.Context, t *target, p part) error {
	if a.dead == nil {
		return a.part(ctx, t, &p)
	}
	for _, one := range p.split() {
		if _, err := a.settle(ctx, t, one); err != nil {
			return err
		}
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
	staged := p // of a move: with its staging table, which holds what is nowhere else
	if p.kind != stage.Move {
		staged.staging = ""
	}
	err := a.alone(ctx, t, staged)
	p = staged
	if !clashes(err) && !a.buries(err) {
		return nil, err
	}
	if p.n == 1 {
		if clashes(err) {
			return []part{p}, err
		}
		return nil, a.bury(ctx, t, p, err)
	}
	if p.kind == stage.Move {
		return nil, err
	}
	var rest []part
	for _, half := range p.halves() {
		clashed, err := a.settle(ctx, t, half)
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

// alone applies one part under a savepoint. Its staging table is empty again afterwards, so that a piece in which many rows
// are told apart needs no more of them than any other.
func (a *apply) alone(ctx context.Context, t *target, p part) error {
	if p.kind == stage.Move {
		return a.savepoint(ctx, func() error { return a.part(ctx, t, &p) })
	}
	keysOnly := p.kind == stage.Delete
	name, err := a.table(ctx, p.batches[0].Schema(), keysOnly) // outside, where a rollback leaves it
	if err != nil {
		return err
	}
	shape := stagingName(p.batches[0].Schema(), keysOnly, 0)
	before := a.staged[shape]
	err = a.savepoint(ctx, func() error { return a.part(ctx, t, &p) })
	if a.s.IsClosed() || ctx.Err() != nil || (err != nil && !clashes(err) && !a.buries(err)) || p.staging == "" {
		return err
	}
	a.staged[shape] = before
	if _, truncated := a.s.Exec(ctx, "TRUNCATE "+name); truncated != nil {
		return truncated
	}
	return err
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
