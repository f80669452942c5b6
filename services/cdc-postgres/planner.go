package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

const (
	// settleMin and settleMax are the pauses between two looks at the transactions that are waited for.
	settleMin, settleMax = 5 * time.Millisecond, time.Second
	// settleWord is after how long a person is told what is waited for.
	settleWord = 10 * time.Second
)

// planner answers the assigner's questions with SQL, beside the enumerator's loop.
type planner struct {
	target *pgrepl.Target
	log    *slog.Logger
	tables map[cdc.TableID]*capturedTable
	sql    session
}

var _ halves.Planner = (*planner)(nil)

func newPlanner(target *pgrepl.Target, log *slog.Logger, tables []capturedTable) *planner {
	return &planner{target: target, log: log, tables: byID(tables), sql: session{target: target}}
}

// Reset implements halves.Planner.
func (p *planner) Reset(ctx context.Context) { p.sql.close(ctx) }

// Bounds implements halves.Planner.
func (p *planner) Bounds(ctx context.Context, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
	conn, err := p.sql.open(ctx)
	if err != nil {
		return nil, false, err
	}
	bounds, last, err = p.bounds(ctx, conn, q)
	if err = p.target.Fault(err); err == nil || fault.ClassOf(err) == fault.Transient {
		return bounds, last, err
	}
	if t := p.tables[q.Table]; t != nil {
		if why := misfit(ctx, conn, p.target.Where(), t); fault.CodeOf(why) == fault.PGCopyAltered {
			err = fault.Mark(fault.Bug, why) // asking again would not mend it
		}
	}
	return nil, false, err
}

// Settle implements halves.Planner.
func (p *planner) Settle(ctx context.Context) error {
	conn, err := p.sql.open(ctx)
	if err != nil {
		return err
	}
	return p.target.Fault(p.settle(ctx, conn))
}

// walking keeps the walk on the key's index, whatever the server's statistics say, and from being compiled for it.
const walking = "SET enable_sort = off; SET jit = off"

// bounds finds where the next chunks of a table begin: one walk along the key's index, in one snapshot. Each step skips a
// chunk; numbering the rows instead (row_number) costs the server half of what it takes to send them.
func (p *planner) bounds(ctx context.Context, conn *pgx.Conn, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
	t := p.tables[q.Table]
	if t == nil {
		return nil, false, fmt.Errorf("table %d is not captured: %w", q.Table, fault.Bug)
	}
	var named, found, texts []string // the key as the table has it, as the steps have it, and for us
	for i, k := range t.Key {
		step := fmt.Sprintf("weir_key_%d", i)
		named, found, texts = append(named, quoted(k.Name)+" AS "+step), append(found, "weir_b."+step), append(texts, step+"::text")
	}
	if _, err := conn.Exec(ctx, walking); err != nil {
		return nil, false, err
	}
	var from string
	if q.After == nil {
		if small, err := p.fits(ctx, conn, t, q.Rows); small || err != nil {
			return nil, small, err
		}
	} else {
		if from, err = within(t, ">=", q.After); err != nil {
			return nil, false, err
		}
		from = " WHERE " + from
	}
	list := keyList(t)
	sql := fmt.Sprintf(`WITH RECURSIVE weir_b AS (
(SELECT %[1]s, 1 AS weir_n FROM %[2]s%[3]s ORDER BY %[4]s OFFSET %[5]d LIMIT 1) UNION ALL
(SELECT weir_x.*, weir_n + 1 FROM weir_b, LATERAL
	(SELECT %[1]s FROM %[2]s WHERE (%[4]s) >= (%[6]s) ORDER BY %[4]s OFFSET %[5]d LIMIT 1) AS weir_x WHERE weir_n < %[7]d)
) SELECT %[8]s FROM weir_b ORDER BY weir_n`,
		strings.Join(named, ", "), t.from(), from, list, q.Rows, strings.Join(found, ", "), q.Max, strings.Join(texts, ", "))
	result := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil)
	for result.NextRow() {
		key, err := keyOf(t, result.Values())
		if err != nil {
			_, _ = result.Close()
			return nil, false, err
		}
		bounds = append(bounds, key)
	}
	_, err = result.Close()
	return bounds, len(bounds) < q.Max, err
}

// fits reports whether a table is one chunk: then its keys need not be compared, for which the types of some have operators
// of other names (hstore's are #<# and #>=#).
func (p *planner) fits(ctx context.Context, conn *pgx.Conn, t *capturedTable, chunk int64) (bool, error) {
	result := conn.PgConn().ExecParams(ctx, fmt.Sprintf("SELECT FROM %s ORDER BY %s OFFSET %d LIMIT 1", t.from(), keyList(t), chunk), nil, nil, nil, nil).Read()
	return len(result.Rows) == 0, result.Err
}

// settle waits until every transaction has ended that has an id by now. A transaction is in progress for a snapshot until
// it is visible, however long ago its commit was logged.
func (p *planner) settle(ctx context.Context, conn *pgx.Conn) error {
	var until uint64
	if err := conn.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&until); err != nil {
		return err
	}
	pause, word := settleMin, time.Now().Add(settleWord)
	for {
		var oldest uint64
		if err := conn.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").Scan(&oldest); err != nil {
			return err
		}
		if oldest >= until {
			return nil
		}
		if now := time.Now(); now.After(word) {
			word = now.Add(settleWord)
			p.log.InfoContext(ctx, "copy waits for transactions that were open when the log began", slog.Uint64("oldest", oldest), slog.Uint64("until", until))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, settleMax)
		}
	}
}
