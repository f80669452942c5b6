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
	return bounds, last, p.target.Fault(err)
}

// Settle implements halves.Planner.
func (p *planner) Settle(ctx context.Context) error {
	conn, err := p.sql.open(ctx)
	if err != nil {
		return err
	}
	return p.target.Fault(p.settle(ctx, conn))
}

// bounds finds where the next chunks of a table begin: one walk along the key's index.
func (p *planner) bounds(ctx context.Context, conn *pgx.Conn, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
	t := p.tables[q.Table]
	if t == nil {
		return nil, false, fmt.Errorf("table %d is not captured: %w", q.Table, fault.Bug)
	}
	list := keyList(t)
	texts := make([]string, len(t.Key))
	for i, k := range t.Key {
		texts[i] = quoted(k.Name) + "::text"
	}
	var b strings.Builder
	var params [][]byte
	fmt.Fprintf(&b, "SELECT %s FROM (SELECT %s, row_number() OVER (ORDER BY %s) - 1 AS weir_n FROM %s", strings.Join(texts, ", "), list, list, t.from())
	if q.After != nil {
		b.WriteString(" WHERE ")
		if params, err = appendBound(&b, nil, t, ">=", q.After); err != nil {
			return nil, false, err
		}
	}
	fmt.Fprintf(&b, " ORDER BY %s LIMIT %d) AS weir_k WHERE weir_n > 0 AND weir_n %% %d = 0 ORDER BY weir_n", list, q.Rows*int64(q.Max)+1, q.Rows)
	result := conn.PgConn().ExecParams(ctx, b.String(), params, nil, nil, nil)
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
