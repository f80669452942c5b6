package postgres

import (
	"cmp"
	"context"
	"slices"

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
		p := part{Group: parts[i].Group}
		switch p.Kind {
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
			p.Kind = stage.Upsert // staged, and inserted row by row where the key is new
		default:
		}
		waiting = append(waiting, partsOf(p.Split())...)
	}
	slices.SortStableFunc(waiting, func(x, y part) int { return cmp.Compare(x.Batches[0].Seq(0), y.Batches[0].Seq(0)) })
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

// remove applies deletes.
func (a *apply) remove(ctx context.Context, t *target, p part) error {
	if a.dead == nil {
		return a.part(ctx, t, &p)
	}
	for _, one := range partsOf(p.Split()) {
		if _, err := a.settle(ctx, t, one); err != nil {
			return err
		}
	}
	return nil
}

func count(parts []part) int {
	n := 0
	for _, p := range parts {
		n += p.N
	}
	return n
}

// settle applies as many rows of a part as the constraints let in and returns the others with the violation they met. An
// error without rows is another one and ends the commit.
func (a *apply) settle(ctx context.Context, t *target, p part) ([]part, error) {
	staged := p // of a move: with its staging table, which holds what is nowhere else
	if p.Kind != stage.Move {
		staged.staging = ""
	}
	err := a.alone(ctx, t, staged)
	p = staged
	if !clashes(err) && !a.buries(err) {
		return nil, err
	}
	if p.N == 1 {
		if clashes(err) {
			return []part{p}, err
		}
		return nil, a.bury(ctx, t, p, err)
	}
	if p.Kind == stage.Move {
		return nil, err
	}
	var rest []part
	for _, half := range p.Halves() {
		clashed, err := a.settle(ctx, t, part{Group: half})
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
	if p.Kind == stage.Move {
		return a.savepoint(ctx, func() error { return a.part(ctx, t, &p) })
	}
	keysOnly := p.Kind == stage.Delete
	name, err := a.table(ctx, p.Batches[0].Schema(), keysOnly) // outside, where a rollback leaves it
	if err != nil {
		return err
	}
	shape := stagingName(p.Batches[0].Schema(), keysOnly, 0)
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
		if p.Kind == stage.Upsert {
			gone := p.deletes()
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
