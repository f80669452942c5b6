package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
)

// copyAltered ends an attempt that was set up for other columns of a table than it has; the next one looks at what was read.
func copyAltered(where string, t *capturedTable) error {
	return fault.New(fault.MYCopyAltered, where, fmt.Sprintf("the columns of table %s changed while it was copied", t), "table", t.String())
}

// misfit is the fault of a table that could not be read as it was captured. err is how that was noticed, and what it stays when the
// table is gone or its columns are what they were.
func (o *opened) misfit(ctx context.Context, s *sql, t *capturedTable, err error) error {
	session, broken := s.open(ctx)
	if broken != nil {
		return broken
	}
	now := &catalog.Table{Name: t.Name}
	if broken := catalog.Describe(ctx, session, []*catalog.Table{now}); broken != nil {
		return broken
	}
	switch my, refused := errors.AsType[*mysql.MyError](err); {
	case len(now.Columns) == 0:
		return err
	case now.Signature() != t.Signature:
		return copyAltered(o.where, t)
	case refused && my.Code == mysql.ER_TABLE_DEF_CHANGED: // an index, say, that came between a snapshot and its first statement
		return fault.Mark(fault.Transient, err)
	}
	return err
}

// realign takes tables of which nothing was read yet as they are now, whatever was changed: every chunk will be read behind the
// change, so no row of the log from before it counts. A table of which a part was read is refused: what rows that were read have
// in a column that was added, or converted, is in no log. log is where the log was, nil when it was not begun.
func (s *setup) realign(ctx context.Context, log *readerState) error {
	var unread []*capturedTable
	var now []*catalog.Table
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		if is, _ := s.assigner.Unread(t.ID); is {
			unread, now = append(unread, t), append(now, &catalog.Table{Name: t.Name, RowBytes: t.RowBytes})
		}
	}
	if err := catalog.Describe(ctx, s.session, now); err != nil {
		return err
	}
	for i, t := range unread {
		if len(now[i].Columns) == 0 || now[i].Signature() == t.Signature {
			continue // whoever reads a table that is gone says so
		}
		if _, begun := s.assigner.Unread(t.ID); begun {
			return columnsChanged(s.where, t)
		}
		c, err := s.capture(now[i], t.ID, t.sent(log))
		if err != nil {
			return err
		}
		*t = c
		s.assigner.Recut(t.task())
		s.cfg.Logger.InfoContext(ctx, "table is copied in other columns", slog.String("table", t.String()), slog.Uint64("version", uint64(t.Number)))
	}
	return nil
}

// sameKey reports whether both descriptions have the same columns as the key.
func (d *described) sameKey(o *described) bool {
	return slices.EqualFunc(d.key, o.key, func(a, b int) bool { return d.columns[a] == o.columns[b] })
}
