package iceberg

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/services/sink/internal/core"
)

// The log keeps the newest logKept commits of each sink and up to logSlack more.
const (
	logKept  = 1000
	logSlack = 50
)

// ledger is the row of one (job, sink), as SQL.
type ledger struct{ job, sink string }

// querier is a database or a transaction on it.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// read returns the row; the zero Row when there is none. With lock it waits for whoever holds the row; transactions of SQLite
// are alone anyway.
func (l ledger) read(ctx context.Context, q querier, lock bool) (core.Row, error) {
	query := `SELECT life, fence, epoch, digest FROM weir_iceberg_ledger WHERE job = $1 AND sink = $2`
	if lock {
		query += ` FOR UPDATE`
	}
	var row core.Row
	var held, at int64
	err := q.QueryRowContext(ctx, query, l.job, l.sink).Scan(&row.Life, &held, &at, &row.Ref.Digest)
	if errors.Is(err, sql.ErrNoRows) {
		return core.Row{}, nil
	}
	row.Fence, row.Ref.Epoch = fence.Token(held), epoch.ID(at)
	return row, err
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// take writes the claim of an attempt: a new row, or the fence of the one there.
func (l ledger) take(ctx context.Context, q querier, life string, own fence.Token) error {
	_, err := q.ExecContext(ctx, `INSERT INTO weir_iceberg_ledger (job, sink, life, fence, epoch, digest, positions, updated)
		VALUES ($1, $2, $3, $4, 0, '', '{}', $5)
		ON CONFLICT (job, sink) DO UPDATE SET fence = excluded.fence, updated = excluded.updated
		WHERE weir_iceberg_ledger.life = excluded.life AND weir_iceberg_ledger.fence <= excluded.fence`,
		l.job, l.sink, life, int64(own), now())
	return err
}

// advance moves the row to the entry's epoch and logs it. The row is locked and known to hold prev.
func (l ledger) advance(ctx context.Context, q querier, e entry) error {
	positions, err := json.Marshal(e.positions)
	if err != nil {
		return fmt.Errorf("encode positions: %w", err)
	}
	if _, err := q.ExecContext(ctx, `UPDATE weir_iceberg_ledger SET epoch = $3, digest = $4, positions = $5, updated = $6 WHERE job = $1 AND sink = $2`,
		l.job, l.sink, int64(e.ref.Epoch), e.ref.Digest, string(positions), now()); err != nil {
		return err
	}
	if _, err := q.ExecContext(ctx, `INSERT INTO weir_iceberg_ledger_log (job, sink, epoch, digest, prev_epoch, prev_digest, fence, row_count, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, l.job, l.sink, int64(e.ref.Epoch), e.ref.Digest, int64(e.prev.Epoch), e.prev.Digest,
		int64(e.fence), int64(e.rows), now()); err != nil {
		return err
	}
	if e.ref.Epoch%logSlack != 0 {
		return nil
	}
	_, err = q.ExecContext(ctx, `DELETE FROM weir_iceberg_ledger_log WHERE job = $1 AND sink = $2 AND epoch <
		(SELECT min(epoch) FROM (SELECT epoch FROM weir_iceberg_ledger_log WHERE job = $1 AND sink = $2 ORDER BY epoch DESC LIMIT $3) newest)`,
		l.job, l.sink, int64(logKept))
	return err
}

// history reads row and log, of one moment.
func (l ledger) history(ctx context.Context, db *sql.DB) (core.Ledger, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return core.Ledger{}, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	var out core.Ledger
	row, err := l.read(ctx, tx, false)
	if missing(err) || (err == nil && row == (core.Row{})) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Life, out.Fence, out.Ref = row.Life, row.Fence, row.Ref
	var positions string
	if err := tx.QueryRowContext(ctx, `SELECT positions FROM weir_iceberg_ledger WHERE job = $1 AND sink = $2`, l.job, l.sink).Scan(&positions); err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(positions), &out.Positions); err != nil {
		return out, fmt.Errorf("positions of the ledger row: %w", err)
	}
	found, err := tx.QueryContext(ctx, `SELECT epoch, digest, prev_epoch, prev_digest, fence, row_count, at FROM weir_iceberg_ledger_log
		WHERE job = $1 AND sink = $2 ORDER BY epoch`, l.job, l.sink)
	if err != nil {
		return out, err
	}
	defer func() { _ = found.Close() }() // Err below is what counts
	for found.Next() {
		var e core.Entry
		var n [4]int64
		var at string
		if err := found.Scan(&n[0], &e.Ref.Digest, &n[1], &e.Prev.Digest, &n[2], &n[3], &at); err != nil {
			return out, err
		}
		e.Ref.Epoch, e.Prev.Epoch, e.Fence, e.Rows = epoch.ID(n[0]), epoch.ID(n[1]), fence.Token(n[2]), uint64(n[3])
		if e.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return out, fmt.Errorf("ledger entry %s: %w", e.Ref.Epoch, err)
		}
		out.Log = append(out.Log, e)
	}
	return out, found.Err()
}

// missing reports whether a query failed because no sink has made the ledger's tables yet.
func missing(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "no such table") || sqlState(err) == "42P01")
}
