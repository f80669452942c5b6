package lake

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/verdict"
)

// Lake is a catalog and the tables of one sink in it. It is safe for concurrent use.
type Lake struct {
	path, namespace, job, sink string

	db *sql.DB
}

// Open reads the catalog in a SQLite file, which need not be there yet.
func Open(path, namespace, job, sink string) (*Lake, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return &Lake{path: path, namespace: namespace, job: job, sink: sink, db: db}, nil
}

// Close lets go of the catalog.
func (l *Lake) Close() error { return l.db.Close() }

// made is an error as long as the sink has not made the catalog: opening it would make an empty one in its place.
func (l *Lake) made() error {
	_, err := os.Stat(l.path)
	return err
}

// Pin is the lake at one moment.
type Pin struct {
	// Epoch and Fence are those of the ledger's row, Logged the sum of the rows in its log.
	Epoch, Fence, Logged int64

	at map[string]string // tables to their metadata files
}

// Pin takes the present moment.
func (l *Lake) Pin(ctx context.Context) (Pin, error) {
	if err := l.made(); err != nil {
		return Pin{}, err
	}
	p := Pin{at: make(map[string]string)}
	found, err := l.db.QueryContext(ctx, `SELECT t.table_name, t.metadata_location, g.epoch, g.fence,
			(SELECT coalesce(sum(row_count), 0) FROM weir_iceberg_ledger_log WHERE job = g.job AND sink = g.sink)
		FROM weir_iceberg_ledger g JOIN iceberg_tables t ON t.table_namespace = $1 WHERE g.job = $2 AND g.sink = $3`, l.namespace, l.job, l.sink)
	if err != nil {
		return p, fmt.Errorf("read catalog: %w", err)
	}
	defer func() { _ = found.Close() }() // Err is what counts
	for found.Next() {
		var name, at string
		if err := found.Scan(&name, &at, &p.Epoch, &p.Fence, &p.Logged); err != nil {
			return p, fmt.Errorf("read catalog: %w", err)
		}
		p.at[name] = at
	}
	if err := found.Err(); err != nil {
		return p, fmt.Errorf("read catalog: %w", err)
	}
	if len(p.at) == 0 {
		return p, errors.New("the catalog has no tables yet")
	}
	return p, nil
}

// Has reports whether all these tables are there.
func (p Pin) Has(tables ...string) bool {
	for _, t := range tables {
		if p.at[t] == "" {
			return false
		}
	}
	return true
}

// Epoch is the newest epoch of the ledger's row; zero before the first.
func (l *Lake) Epoch(ctx context.Context) (at int64, err error) {
	if err := l.made(); err != nil {
		return 0, err
	}
	err = l.db.QueryRowContext(ctx, "SELECT epoch FROM weir_iceberg_ledger WHERE job = $1 AND sink = $2", l.job, l.sink).Scan(&at)
	return at, err
}

// Ledger reads the commits that are logged, oldest first. It is an error when the oldest ones are gone: then nothing can be said of
// them.
func (l *Lake) Ledger(ctx context.Context) ([]verdict.Applied, error) {
	if err := l.made(); err != nil {
		return nil, err
	}
	found, err := l.db.QueryContext(ctx, `SELECT epoch, digest, prev_epoch, prev_digest, fence, row_count, at
		FROM weir_iceberg_ledger_log WHERE job = $1 AND sink = $2 ORDER BY epoch`, l.job, l.sink)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer func() { _ = found.Close() }() // Err is what counts
	var log []verdict.Applied
	for found.Next() {
		a := verdict.Applied{LedgerID: verdict.LedgerID{Job: l.job, Sink: l.sink}}
		var at, prev, token, n int64
		var when string
		if err := found.Scan(&at, &a.Ref.Digest, &prev, &a.Prev.Digest, &token, &n, &when); err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		a.Ref.Epoch, a.Prev.Epoch, a.Fence, a.Rows = epoch.ID(at), epoch.ID(prev), fence.Token(token), uint64(n)
		if a.At, err = time.Parse(time.RFC3339Nano, when); err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		log = append(log, a)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	if len(log) == 0 || !log[0].Prev.IsZero() {
		return nil, errors.New("the ledger does not begin with its first commit")
	}
	return log, nil
}

// Hold takes the catalog's write lock, so that nobody commits, until release. Readers are not held up.
func (l *Lake) Hold(ctx context.Context) (release func() error, err error) {
	tx, err := l.db.BeginTx(context.WithoutCancel(ctx), nil) // the end of ctx is no release
	for busy(err) && ctx.Err() == nil {
		tx, err = l.db.BeginTx(context.WithoutCancel(ctx), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the catalog: %w", err)
	}
	return tx.Rollback, nil
}

func busy(err error) bool { return err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") }
