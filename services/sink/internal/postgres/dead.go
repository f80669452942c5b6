package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// dead are the rows that one commit leaves out because they have a letter.
type dead struct {
	*transact.Dead

	// late are rows that lack a row of another table, which may come with a later piece.
	late []orphan
	last bool // no piece comes any more
}

// orphan is a row that waits for another.
type orphan struct {
	t    *target
	p    part
	keys []string
	err  error
}

// Classes and states of errors that concern the row and nothing else.
const (
	dataException        = "22"
	integrityViolation   = "23"
	checkOptionViolation = "44"
	raisedByTrigger      = "P0001"
	limitExceeded        = "54000" // such as an index entry that is too long
	foreignKeyViolation  = "23503"
	restrictViolation    = "23001"
)

// poisonous reports whether an error means that the target cannot take a row for a reason of the row itself.
func poisonous(err error) bool {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Class() == fault.Poison
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(pg.Code) < 2 {
		return false
	}
	return pg.Code[:2] == dataException || pg.Code[:2] == integrityViolation || pg.Code[:2] == checkOptionViolation ||
		pg.Code == raisedByTrigger || pg.Code == limitExceeded
}

// buries reports whether a row with this error becomes a dead letter.
func (a *apply) buries(err error) bool { return a.dead != nil && err != nil && poisonous(err) }

// bury puts the one row of a part aside. A row that lacks one of another table waits for the end of the epoch.
func (a *apply) bury(ctx context.Context, t *target, p part, cause error) error {
	d := a.dead
	if (hasState(cause, foreignKeyViolation) || hasState(cause, restrictViolation)) && !d.last {
		d.late = append(d.late, orphan{t, p, stage.KeysOf(t.schema, p.Batches[0], 0), cause})
		return nil
	}
	at := a.c.at
	at.Table = t.plain
	return d.Put(ctx, p.Group, t.schema, translate(ctx, cause, at))
}

// lacking puts the rows aside that mode append cannot keep.
func (a *apply) lacking(ctx context.Context, t *target, groups []stage.Group) ([]stage.Group, error) {
	return stage.Kept(groups, func(row stage.Group, column string) error {
		return a.bury(ctx, t, part{Group: row}, fault.New(fault.SinkPartialImage, a.c.at.Sink+", table "+t.plain, "column "+column+" was not sent",
			"table", string(t.schema.Table())))
	})
}

// overtaken notes changes of keys that have letters, and gives a letter to each row that waits while a newer state of its key
// is about to be applied: applied last, it would undo that.
func (a *apply) overtaken(ctx context.Context, l loaded) error {
	table := l.schema.Table()
	if a.c.cfg.Sink.Mode != spec.Upsert {
		return nil
	}
	waiting := make(map[string]bool)
	for _, o := range a.dead.late {
		if o.t.schema.Table() == table {
			for _, key := range o.keys {
				waiting[key] = true
			}
		}
	}
	if len(waiting) == 0 && !a.dead.Watches(table) {
		return nil
	}
	newer := make(map[string]bool)
	for _, p := range l.parts {
		for n, b := range p.Batches {
			for i := range b.NumRows() {
				keys := stage.KeysOf(l.schema, b, i)
				a.dead.Change(table, keys, p.First[n]+i, waiting)
				for _, key := range keys {
					newer[key] = newer[key] || waiting[key]
				}
			}
		}
	}
	kept := a.dead.late[:0]
	for _, o := range a.dead.late {
		if o.t.schema.Table() != table || !slices.ContainsFunc(o.keys, func(k string) bool { return newer[k] }) {
			kept = append(kept, o)
			continue
		}
		a.dead.last = true
		err := a.bury(ctx, o.t, o.p, o.err)
		a.dead.last = false
		if err != nil {
			return err
		}
	}
	a.dead.late = kept
	return nil
}

// settled is the end of a commit with dead letters: rows that waited for others are tried again for as long as that helps,
// and constraints that wait for COMMIT are asked now. Nothing may be left that only COMMIT would find.
func (a *apply) settled(ctx context.Context) error {
	d := a.dead
	for len(d.late) > 0 && !d.last {
		late := d.late
		d.late = nil
		for _, o := range late {
			if _, err := a.settle(ctx, o.t, o.p); err != nil {
				return err
			}
		}
		if len(d.late) == len(late) {
			d.last = true
		}
	}
	for _, o := range d.late {
		if err := a.bury(ctx, o.t, o.p, o.err); err != nil {
			return err
		}
	}
	if a.strict {
		return nil
	}
	_, err := a.s.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
	if poisonous(err) {
		return deferredError{err}
	}
	return err
}

// deferredError is a violation that showed at the end of a transaction, so that nobody knows the row.
type deferredError struct{ error }

func (e deferredError) Unwrap() error { return e.error }

// singles is how many rows that moved are staged one by one, so that each can be told from the others.
const singles = 64

// completed stages moves and completes them; those whose old row is missing are buried. It reads the target only.
func (a *apply) completed(ctx context.Context, t *target, p part) ([]part, error) {
	var whole []part
	todo := p.Apart(singles)
	for len(todo) > 0 {
		one := part{Group: todo[0]}
		todo = todo[1:]
		err := a.savepoint(ctx, func() error { return a.complete(ctx, t, &one) })
		switch {
		case err == nil:
			whole = append(whole, one)
		case !a.buries(err):
			return nil, err
		case one.N > 1:
			halves := one.Halves()
			todo = append(halves[:], todo...)
		default:
			if err := a.bury(ctx, t, one, err); err != nil {
				return nil, err
			}
		}
	}
	return whole, nil
}

var errLost = errors.New("rows that no order lets in")

// force applies rows that clash in any order: their old states are taken out first, which breaks any ring of unique
// values, and what even then has no place is buried with its old state left as it is.
func (a *apply) force(ctx context.Context, t *target, clashed []part) error {
	for len(clashed) > 0 {
		lost := make(map[int]error)
		err := a.savepoint(ctx, func() error {
			clear(lost)
			for _, p := range clashed {
				if p.Kind == stage.Upsert && !t.cascades {
					if err := a.alone(ctx, t, p.deletes()); err != nil {
						return err
					}
				}
			}
			for i, p := range clashed {
				err := a.alone(ctx, t, p)
				if a.buries(err) {
					lost[i] = err
				} else if err != nil {
					return err
				}
			}
			if len(lost) > 0 {
				return errLost
			}
			return nil
		})
		if !errors.Is(err, errLost) {
			return err
		}
		kept := make([]part, 0, len(clashed))
		for i, p := range clashed {
			if lost[i] == nil {
				kept = append(kept, p)
			} else if err := a.bury(ctx, t, p, lost[i]); err != nil {
				return err
			}
		}
		clashed = kept
	}
	return nil
}
