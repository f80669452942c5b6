package iceberg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // driver "sqlite"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/durable"
)

// catalogName is the catalog that the rows of Weir's tables belong to; other engines name it to find them.
const catalogName = "weir"

const sqliteScheme = "sqlite://"

// catalog is a SQL catalog in the layout that JDBC catalogs of Iceberg share, with the sinks' ledger beside it. It keeps for each
// table where its newest metadata is, and nothing else of it.
type catalog struct {
	db       *sql.DB
	postgres bool
}

// pointer is one row of the catalog: a table and its newest metadata.
type pointer struct {
	namespace, name string
}

// move takes a table from one metadata file to the next; from is empty when the table is new.
type move struct {
	pointer
	from, to string
}

// errMoved says that a table's metadata is not the one that a commit was built on.
var errMoved = errors.New("another commit has changed the table")

// openCatalog connects to the database of the catalog. session names the process to a server's administrator.
func openCatalog(address, session, where string) (*catalog, error) {
	if path, ok := strings.CutPrefix(address, sqliteScheme); ok {
		if err := durable.MakeDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		// Transactions take the write lock at once: there is nothing to upgrade and no deadlock.
		options := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}}
		db, err := sql.Open("sqlite", "file:"+path+"?"+options.Encode())
		return &catalog{db: db}, err
	}
	cfg, err := pgx.ParseConfig(address)
	if err != nil || !strings.HasPrefix(address, "postgres") {
		return nil, fault.New(fault.SinkBadURL, where+".catalog", "the address begins with neither sqlite:// nor postgres://, or cannot be read", "where", where+".catalog")
	}
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"application_name": session, "lock_timeout": "2s", "statement_timeout": "30s", "TimeZone": "UTC",
		// A process that is frozen in the middle of a commit keeps the ledger's row no longer than this.
		"idle_in_transaction_session_timeout": "5s",
	})
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(2)
	return &catalog{db: db, postgres: true}, nil
}

func (c *catalog) close() error { return c.db.Close() }

// create makes the tables when they are missing.
func (c *catalog) create(ctx context.Context) error {
	for _, ddl := range []string{
		`CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
			table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
			iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))`,
		`CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
			property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))`,
		`CREATE TABLE IF NOT EXISTS weir_iceberg_ledger (job VARCHAR(64) NOT NULL, sink VARCHAR(64) NOT NULL, life TEXT NOT NULL,
			fence BIGINT NOT NULL, epoch BIGINT NOT NULL, digest TEXT NOT NULL, positions TEXT NOT NULL, updated TEXT NOT NULL,
			PRIMARY KEY (job, sink))`,
		`CREATE TABLE IF NOT EXISTS weir_iceberg_ledger_log (job VARCHAR(64) NOT NULL, sink VARCHAR(64) NOT NULL, epoch BIGINT NOT NULL,
			digest TEXT NOT NULL, prev_epoch BIGINT NOT NULL, prev_digest TEXT NOT NULL, fence BIGINT NOT NULL, row_count BIGINT NOT NULL,
			at TEXT NOT NULL, PRIMARY KEY (job, sink, epoch))`,
	} {
		// Two that start at once may both try; the loser's unique violation says that the winner has made it.
		if _, err := c.db.ExecContext(ctx, ddl); err != nil && !isUnique(err) {
			return err
		}
	}
	return nil
}

// lookUp finds a table's newest metadata; empty when the catalog has no such table.
func (c *catalog) lookUp(ctx context.Context, p pointer) (string, error) {
	var at sql.NullString
	err := c.db.QueryRowContext(ctx, `SELECT metadata_location FROM iceberg_tables
		WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`, catalogName, p.namespace, p.name).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return at.String, err
}

// change is everything that one commit changes in the catalog.
type change struct {
	moves []move
	// entry is the epoch for the ledger; nil when the commit is none of an epoch.
	entry *entry
	// allow judges the ledger's row, which is locked.
	allow func(core.Row) error
}

// apply makes a change in one transaction: all of it or nothing. unknown is true when the error leaves open which.
func (c *catalog) apply(ctx context.Context, l ledger, ch change) (unknown bool, err error) {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	if err := c.within(ctx, tx, l, ch); err != nil {
		return false, errors.Join(err, rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return true, err
	}
	return false, nil
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

func (c *catalog) within(ctx context.Context, tx *sql.Tx, l ledger, ch change) error {
	row, err := l.read(ctx, tx, c.postgres)
	if err != nil {
		return err
	}
	if err := ch.allow(row); err != nil {
		return err
	}
	for _, m := range ch.moves {
		if err := m.apply(ctx, tx); err != nil {
			return fmt.Errorf("table %s.%s: %w", m.namespace, m.name, err)
		}
	}
	if ch.entry == nil {
		return nil
	}
	return l.advance(ctx, tx, *ch.entry)
}

func (m move) apply(ctx context.Context, tx *sql.Tx) error {
	if m.from == "" {
		if _, err := tx.ExecContext(ctx, `INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
			VALUES ($1, $2, 'exists', 'true') ON CONFLICT DO NOTHING`, catalogName, m.namespace); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
			VALUES ($1, $2, $3, $4, 'TABLE')`, catalogName, m.namespace, m.name, m.to)
		if isUnique(err) {
			return errMoved
		}
		return err
	}
	r, err := tx.ExecContext(ctx, `UPDATE iceberg_tables SET metadata_location = $1, previous_metadata_location = $2
		WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $2`,
		m.to, m.from, catalogName, m.namespace, m.name)
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n != 1 {
		return errMoved
	}
	return err
}

func isUnique(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505"
	}
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed")
}
