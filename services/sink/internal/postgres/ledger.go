package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// The ledger's tables, in the schema the sink writes to.
const (
	ledgerTable = "weir_ledger"
	// logTable has one row per commit, the newest logKept of each sink and up to logSlack more.
	logTable = "weir_ledger_log"
	// ownTable remembers which tables a sink has taken over, so that it asks about their contents once.
	ownTable = "weir_ledger_tables"

	logKept  = 1000
	logSlack = 50
)

// querier is a connection or a transaction on it.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ledger is the row of one (job, sink) in one schema, as SQL.
type ledger struct {
	schema, job, sink string
}

func (l ledger) name(table string) string { return pgx.Identifier{l.schema, table}.Sanitize() }

// create makes schema and tables when they are missing. Two committers that start at once may both try; the loser's
// unique violation in the catalog says that the winner has made it.
func (l ledger) create(ctx context.Context, q querier) error {
	var there bool
	err := q.QueryRow(ctx, `SELECT count(*) = 3 AND bool_or(a.attnum IS NOT NULL) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND c.relname = $4 AND a.attname = 'columns' AND NOT a.attisdropped
		WHERE n.nspname = $1 AND c.relname IN ($2, $3, $4)`, l.schema, ledgerTable, logTable, ownTable).Scan(&there)
	if err != nil || there {
		return err
	}
	if err := createSchema(ctx, q, l.schema); err != nil {
		return err
	}
	for _, ddl := range []string{
		`CREATE TABLE IF NOT EXISTS ` + l.name(ledgerTable) + ` (
			job text, sink text, life text NOT NULL, fence bigint NOT NULL, epoch bigint NOT NULL, digest text NOT NULL,
			positions jsonb NOT NULL, updated timestamptz NOT NULL, PRIMARY KEY (job, sink)) WITH (fillfactor = 50)`,
		`CREATE TABLE IF NOT EXISTS ` + l.name(logTable) + ` (
			job text, sink text, epoch bigint, digest text NOT NULL, prev_epoch bigint NOT NULL, prev_digest text NOT NULL,
			fence bigint NOT NULL, rows bigint NOT NULL, dead bigint NOT NULL, at timestamptz NOT NULL,
			PRIMARY KEY (job, sink, epoch))`,
		`CREATE TABLE IF NOT EXISTS ` + l.name(ownTable) + ` (
			job text, sink text, source text, target text NOT NULL, made boolean NOT NULL, at timestamptz NOT NULL, columns jsonb,
			PRIMARY KEY (job, sink, source), UNIQUE (job, sink, target))`,
		`ALTER TABLE ` + l.name(ownTable) + ` ADD COLUMN IF NOT EXISTS columns jsonb`,
	} {
		if _, err := q.Exec(ctx, ddl); err != nil && !hasState(err, uniqueViolation) {
			return err
		}
	}
	return nil
}

// createSchema does not ask for the right to create schemas when the schema is there.
func createSchema(ctx context.Context, q querier, schema string) error {
	var there bool
	if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&there); err != nil || there {
		return err
	}
	_, err := q.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{schema}.Sanitize())
	if hasState(err, uniqueViolation) {
		return nil
	}
	return err
}

// read returns the row; the zero Row when there is none. With lock it waits for whoever holds the row.
func (l ledger) read(ctx context.Context, q querier, lock bool) (core.Row, error) {
	sql := `SELECT life, fence, epoch, digest FROM ` + l.name(ledgerTable) + ` WHERE job = $1 AND sink = $2`
	if lock {
		sql += ` FOR UPDATE`
	}
	var row core.Row
	var held, at int64
	err := q.QueryRow(ctx, sql, l.job, l.sink).Scan(&row.Life, &held, &at, &row.Ref.Digest)
	if errors.Is(err, pgx.ErrNoRows) {
		return core.Row{}, nil
	}
	row.Fence, row.Ref.Epoch = fence.Token(held), epoch.ID(at)
	return row, err
}

// take writes the claim of an attempt: a new row, or the fence of the one there.
func (l ledger) take(ctx context.Context, q querier, life string, own fence.Token) error {
	_, err := q.Exec(ctx, `INSERT INTO `+l.name(ledgerTable)+` AS l (job, sink, life, fence, epoch, digest, positions, updated)
		VALUES ($1, $2, $3, $4, 0, '', '{}', now())
		ON CONFLICT (job, sink) DO UPDATE SET fence = excluded.fence, updated = now()
		WHERE l.life = excluded.life AND l.fence <= excluded.fence`,
		l.job, l.sink, life, int64(own))
	return err
}

// entry is one commit for the ledger.
type entry struct {
	ref, prev  epoch.Ref
	fence      fence.Token
	positions  map[string]position.Position
	rows, dead uint64
}

// advance moves the row to the entry's epoch and logs it. It is the last thing a commit does before COMMIT; the row is
// locked and known to hold prev.
func (l ledger) advance(ctx context.Context, s *session, e entry) error {
	positions, err := json.Marshal(e.positions)
	if err != nil {
		return fmt.Errorf("encode positions: %w", err)
	}
	var b pgx.Batch
	b.Queue(`UPDATE `+l.name(ledgerTable)+` SET epoch = $3, digest = $4, positions = $5::text::jsonb, updated = now()
		WHERE job = $1 AND sink = $2`, l.job, l.sink, int64(e.ref.Epoch), e.ref.Digest, string(positions))
	b.Queue(`INSERT INTO `+l.name(logTable)+` (job, sink, epoch, digest, prev_epoch, prev_digest, fence, rows, dead, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp())`,
		l.job, l.sink, int64(e.ref.Epoch), e.ref.Digest, int64(e.prev.Epoch), e.prev.Digest, int64(e.fence), int64(e.rows), int64(e.dead))
	if e.ref.Epoch%logSlack == 0 {
		b.Queue(`DELETE FROM `+l.name(logTable)+` WHERE job = $1 AND sink = $2 AND epoch <
			(SELECT min(epoch) FROM (SELECT epoch FROM `+l.name(logTable)+` WHERE job = $1 AND sink = $2
			 ORDER BY epoch DESC LIMIT $3) newest)`, l.job, l.sink, int64(logKept))
	}
	return s.SendBatch(ctx, &b).Close()
}

// ReadLedger reads a sink's ledger for people and audits. It changes nothing and takes no lock; a target without a ledger
// gives the zero value.
func ReadLedger(ctx context.Context, url, schema, job, sink string) (core.Ledger, error) {
	at := transact.Place{Sink: "sinks." + sink}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return core.Ledger{}, badURL(at)
	}
	cfg.ConnectTimeout = connectTimeout
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.RuntimeParams["application_name"] = "weir:read:" + job
	cfg.RuntimeParams["TimeZone"] = "UTC"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return core.Ledger{}, translate(ctx, err, at)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var out core.Ledger
	// One snapshot for row and log, so that they agree.
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var err error
		out, err = ledger{schema: cmp.Or(schema, defaultSchema), job: job, sink: sink}.history(ctx, tx)
		return err
	})
	if hasState(err, undefinedTable) {
		return core.Ledger{}, nil
	}
	return out, translate(ctx, err, at)
}

func (l ledger) history(ctx context.Context, q querier) (core.Ledger, error) {
	var out core.Ledger
	row, err := l.read(ctx, q, false)
	if err != nil || row == (core.Row{}) {
		return out, err
	}
	out.Life, out.Fence, out.Ref = row.Life, row.Fence, row.Ref
	var positions string
	if err := q.QueryRow(ctx, `SELECT positions::text FROM `+l.name(ledgerTable)+` WHERE job = $1 AND sink = $2`,
		l.job, l.sink).Scan(&positions); err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(positions), &out.Positions); err != nil {
		return out, fmt.Errorf("positions of the ledger row: %w", err)
	}
	rows, err := q.Query(ctx, `SELECT epoch, digest, prev_epoch, prev_digest, fence, rows, dead, at FROM `+l.name(logTable)+`
		WHERE job = $1 AND sink = $2 ORDER BY epoch`, l.job, l.sink)
	if err != nil {
		return out, err
	}
	out.Log, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (core.Entry, error) {
		var e core.Entry
		var n [5]int64
		err := r.Scan(&n[0], &e.Ref.Digest, &n[1], &e.Prev.Digest, &n[2], &n[3], &n[4], &e.At)
		e.Ref.Epoch, e.Prev.Epoch, e.Fence = epoch.ID(n[0]), epoch.ID(n[1]), fence.Token(n[2])
		e.Rows, e.Dead = uint64(n[3]), uint64(n[4])
		return e, err
	})
	return out, err
}
