package mysql

import (
	"cmp"
	"context"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/stage"
)

// buries reports whether a row with this error becomes a dead letter.
func (a *apply) buries(err error) bool { return a.dead != nil && err != nil && poisonous(err) }

// bury puts the one row of a group aside.
func (a *apply) bury(ctx context.Context, t *target, g stage.Group, cause error) error {
	at := a.c.at
	at.Table = t.plain
	return a.dead.Put(ctx, g, t.schema, translate(ctx, cause, at))
}

// lacking puts the rows aside that mode append cannot keep.
func (a *apply) lacking(ctx context.Context, t *target, groups []stage.Group) ([]stage.Group, error) {
	return stage.Kept(groups, func(row stage.Group, column string) error {
		return a.bury(ctx, t, row, fault.New(fault.SinkPartialImage, a.c.at.Sink+", table "+t.plain, "column "+column+" was not sent",
			"table", string(t.schema.Table())))
	})
}

// replay applies a piece again after a violation: deletes first, then its rows in the order of the source, in ever smaller
// groups where they clash. Rows whose value another row has to give up first wait for the next round; rows that wait for each
// other in a ring are taken out and put in again. A row that cannot be taken for itself is buried, where there are dead
// letters; the others are not applied one by one for it, but in halves.
func (a *apply) replay(ctx context.Context, t *target, groups []stage.Group) error {
	var waiting []step
	clear(a.inUse) // what was staged behind the savepoint is gone
	for _, g := range groups {
		switch g.Kind {
		case stage.Move: // before anything else of the piece, see complete
			whole, err := a.completed(ctx, t, g)
			if err != nil {
				return err
			}
			waiting = append(waiting, whole...)
		case stage.Delete:
			for _, one := range g.Split() {
				if _, err := a.settle(ctx, t, step{Group: one}); err != nil {
					return err
				}
			}
		default:
			for _, one := range g.Split() {
				waiting = append(waiting, step{Group: one})
			}
		}
	}
	slices.SortStableFunc(waiting, func(x, y step) int { return cmp.Compare(x.Batches[0].Seq(0), y.Batches[0].Seq(0)) })
	for len(waiting) > 0 {
		var clashed []step
		before := count(waiting)
		for _, j := range waiting {
			rest, err := a.settle(ctx, t, j)
			if err != nil {
				return err
			}
			clashed = append(clashed, rest...)
		}
		if count(clashed) == before {
			return a.reinsert(ctx, t, clashed)
		}
		waiting = clashed
	}
	return nil
}

func count(steps []step) int {
	n := 0
	for _, j := range steps {
		n += j.N
	}
	return n
}

// singles is how many rows that moved are staged one by one, so that each can be told from the others.
const singles = 64

// completed stages moves and completes them; those whose old row is missing are buried.
func (a *apply) completed(ctx context.Context, t *target, g stage.Group) ([]step, error) {
	var whole []step
	todo := g.Apart(singles)
	for len(todo) > 0 {
		j := step{Group: todo[0]}
		todo = todo[1:]
		err := a.savepoint(ctx, func() error { return a.complete(ctx, t, &j) })
		switch {
		case err == nil:
			whole = append(whole, j)
		case !a.buries(err):
			return nil, err
		case j.N > 1:
			halves := j.Halves()
			todo = append(halves[:], todo...)
		default:
			if err := a.bury(ctx, t, j.Group, err); err != nil {
				return nil, err
			}
		}
	}
	return whole, nil
}

// settle applies as many rows of a group as the constraints let in and returns the others. An error ends the commit.
func (a *apply) settle(ctx context.Context, t *target, j step) ([]step, error) {
	err := a.savepoint(ctx, func() error { return a.group(ctx, t, j) })
	clashes := hasNumber(err, duplicateEntry)
	switch {
	case err == nil:
		return nil, nil
	case !clashes && !a.buries(err):
		return nil, err
	case j.N == 1 && clashes:
		return []step{j}, nil
	case j.N == 1:
		return nil, a.bury(ctx, t, j.Group, err)
	case j.Kind == stage.Move:
		return nil, err
	}
	var rest []step
	for _, half := range j.Halves() {
		clashed, err := a.settle(ctx, t, step{Group: half})
		if err != nil {
			return nil, err
		}
		rest = append(rest, clashed...)
	}
	return rest, nil
}

// reinsert takes whole rows out before it puts their new state in, which breaks any ring of unique values. What even then has
// no place is buried with its old state as it was, or ends the commit.
func (a *apply) reinsert(ctx context.Context, t *target, steps []step) error {
	for len(steps) > 0 {
		lost := -1
		var why error
		err := a.savepoint(ctx, func() error {
			for _, j := range steps {
				if j.Kind != stage.Upsert && j.Kind != stage.Fresh {
					continue
				}
				if err := a.group(ctx, t, step{Group: stage.Group{Kind: stage.Delete, Batches: j.Batches, First: j.First, N: j.N}}); err != nil {
					return err
				}
			}
			for i, j := range steps {
				if err := a.group(ctx, t, j); err != nil {
					lost, why = i, err
					return err
				}
			}
			return nil
		})
		if err == nil {
			return nil
		}
		if lost < 0 || !a.buries(why) {
			return err
		}
		if err := a.bury(ctx, t, steps[lost].Group, why); err != nil {
			return err
		}
		steps = slices.Delete(slices.Clone(steps), lost, lost+1)
	}
	return nil
}
