package cdcmysql

import (
	"context"
	"time"

	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// viewAge bounds how long a snapshot serves the chunks behind the one that it was opened for. While it is open the server keeps
// old versions of rows, and nobody alters the table.
const viewAge = time.Second

// view is a snapshot that is open, and what has to be known of it to read a chunk. All chunks that are read in it have its mark.
type view struct {
	plan    *scanPlan
	mark    []byte
	changes *changes
	since   time.Time
	// settled says that the table's columns are those of the plan until the snapshot ends: a statement in it has read the table,
	// which nobody can alter from then on, and its definition was looked at behind that.
	settled bool
}

// look returns a snapshot for a chunk: the one that is open, when that is of the table and young, else a new one.
func (c *copier) look(ctx context.Context, plan *scanPlan) (*view, error) {
	if v := c.view; v != nil && v.plan == plan && time.Since(v.since) < viewAge {
		return v, nil
	}
	c.leave(ctx)
	point, steps, err := c.snapshot(ctx, plan)
	if err != nil {
		return nil, err
	}
	v := &view{plan: plan, since: time.Now()}
	if v.mark, err = core.NewMark(point).Encode(); err != nil {
		return nil, err
	}
	if v.changes, err = plan.changed(steps, c.where); err != nil {
		return nil, err
	}
	if !plan.captured.Whole { // its one statement ends the snapshot itself
		c.view = v
	}
	return v, nil
}

// leave ends the snapshot that is open, if there is one. It never waits with one open.
func (c *copier) leave(ctx context.Context) {
	if c.view == nil {
		return
	}
	c.view = nil
	if c.sql.session.Exec(ctx, "COMMIT") != nil {
		c.sql.close() // which ends it as well
	}
}

// unchanged refuses the rows of a table whose columns are no longer those of the plan. It is called behind the statement that
// read them.
func (c *copier) unchanged(ctx context.Context, v *view) error {
	if v.settled {
		return nil
	}
	session, err := c.sql.open(ctx)
	if err != nil {
		return err
	}
	name := v.plan.captured.Name
	text, err := catalog.Definition(ctx, session, name)
	if err == nil && text == v.plan.definition {
		v.settled = true
		return nil
	}
	c.leave(ctx) // it might see the catalog of its beginning
	if session, err = c.sql.open(ctx); err != nil {
		return err
	}
	now := &catalog.Table{Name: name}
	if err := catalog.Describe(ctx, session, []*catalog.Table{now}); err != nil {
		return err
	}
	if now.Signature() != v.plan.captured.Signature {
		return columnsChanged(c.where, v.plan.captured)
	}
	if again, err := catalog.Definition(ctx, session, name); err == nil && again == text {
		v.plan.definition = text // it was that all the while
	}
	return nil
}
