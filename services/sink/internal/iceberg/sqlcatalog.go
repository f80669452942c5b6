package iceberg

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // driver "sqlite"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/durable"
)

// catalogName is the catalog that the rows of Weir's tables belong to; other engines name it to find them.
const catalogName = "weir"

const sqliteScheme = "sqlite://"

// sqlCatalog is a SQL catalog in the layout that JDBC catalogs of Iceberg share, with the sinks' ledger beside it. It keeps for each
// table where its newest metadata is, and nothing else of it.
type sqlCatalog struct {
	db       *sql.DB
	postgres bool
	ledger   ledger
	life     string
	fs       iceio.WriteFileIO
}

var _ catalog = (*sqlCatalog)(nil)

// openSQL connects to the database of the catalog.
func openSQL(p *place, session string) (*sqlCatalog, error) {
	address, where := p.catalog, p.where
	c := &sqlCatalog{ledger: ledger{job: p.cfg.Job, sink: p.cfg.Sink.Name}, life: p.cfg.Life, fs: p.fs}
	if path, ok := strings.CutPrefix(address, sqliteScheme); ok {
		if err := durable.MakeDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		// Transactions take the write lock at once: there is nothing to upgrade and no deadlock.
		options := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}}
		var err error
		c.db, err = sql.Open("sqlite", "file:"+path+"?"+options.Encode())
		return c, err
	}
	cfg, err := pgx.ParseConfig(address)
	if err != nil || !strings.HasPrefix(address, "postgres") {
		return nil, fault.New(fault.SinkBadURL, where+".catalog", "the address begins with none of sqlite://, postgres:// and https://, or cannot be read", "where", where+".catalog")
	}
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"application_name": session, "lock_timeout": "2s", "statement_timeout": "30s", "TimeZone": "UTC",
		// A process that is frozen in the middle of a commit keeps the ledger's row no longer than this.
		"idle_in_transaction_session_timeout": "5s",
	})
	c.db, c.postgres = stdlib.OpenDB(*cfg), true
	c.db.SetMaxOpenConns(2)
	return c, nil
}

func (c *sqlCatalog) close() error { return c.db.Close() }

func (c *sqlCatalog) prepare(ctx context.Context) error {
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
		`CREATE TABLE IF NOT EXISTS weir_iceberg_tables (job VARCHAR(64) NOT NULL, sink VARCHAR(64) NOT NULL, life VARCHAR(64) NOT NULL,
			table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, PRIMARY KEY (job, sink, life, table_namespace, table_name))`,
	} {
		// Two that start at once may both try; the loser's unique violation says that the winner has made it.
		if _, err := c.db.ExecContext(ctx, ddl); err != nil && !isUnique(err) {
			return err
		}
	}
	return nil
}

func (c *sqlCatalog) row(ctx context.Context) (core.Row, error) {
	return c.ledger.read(ctx, c.db, false)
}

func (c *sqlCatalog) claim(ctx context.Context, life string, own fence.Token, allow func(core.Row) error) (found core.Row, err error) {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return core.Row{}, err
	}
	if found, err = c.ledger.read(ctx, tx, c.postgres); err == nil {
		err = allow(found)
	}
	if err == nil {
		err = c.ledger.take(ctx, tx, life, own)
	}
	if err != nil {
		return core.Row{}, errors.Join(err, rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return core.Row{}, err
	}
	if found != (core.Row{}) {
		return found, nil
	}
	// Two first claims may have met; only the row says whose it is.
	now, err := c.row(ctx)
	if err != nil {
		return core.Row{}, err
	}
	return core.Row{}, allow(now)
}

func (c *sqlCatalog) history(ctx context.Context) (core.Ledger, error) {
	return c.ledger.history(ctx, c.db)
}

// lookUp finds a table's newest metadata; empty when the catalog has no such table, or when no sink has made the catalog yet.
func (c *sqlCatalog) lookUp(ctx context.Context, p pointer) (string, error) {
	var at sql.NullString
	err := c.db.QueryRowContext(ctx, `SELECT metadata_location FROM iceberg_tables
		WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3`, catalogName, p.namespace, p.name).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) || missing(err) {
		return "", nil
	}
	return at.String, err
}

func (c *sqlCatalog) load(ctx context.Context, p pointer, had *state) (string, table.Metadata, error) {
	at, err := c.lookUp(ctx, p)
	if err != nil || at == "" {
		return "", nil, err
	}
	if had != nil && had.at == at {
		return at, had.meta, nil
	}
	f, err := c.fs.Open(at)
	if err != nil {
		return "", nil, err
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, err
	}
	meta, err := table.ParseMetadataBytes(data)
	return at, meta, err
}

// note remembers that a table was made.
func (c *sqlCatalog) note(ctx context.Context, tx *sql.Tx, p pointer) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO weir_iceberg_tables (job, sink, life, table_namespace, table_name) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, c.ledger.job, c.ledger.sink, c.life, p.namespace, p.name)
	return err
}

func (c *sqlCatalog) had(ctx context.Context, p pointer) (there bool, err error) {
	err = c.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM weir_iceberg_tables
		WHERE job = $1 AND sink = $2 AND life = $3 AND table_namespace = $4 AND table_name = $5)`,
		c.ledger.job, c.ledger.sink, c.life, p.namespace, p.name).Scan(&there)
	return there, err
}

// begin does nothing: the commit that points at a table's first metadata makes the table.
func (c *sqlCatalog) begin(_ context.Context, _ pointer, first table.Metadata) (string, table.Metadata, error) {
	return "", first, nil
}

// stage writes the metadata into a file of its own.
func (c *sqlCatalog) stage(_ context.Context, last *state, next table.Metadata) (string, error) {
	data, err := json.Marshal(next)
	if err != nil {
		return "", fmt.Errorf("encode metadata: %w", err)
	}
	at := nextMetadata(next.Location(), last.at)
	return at, c.fs.WriteFile(at, data)
}

// apply makes a change in one transaction: all of it or nothing.
func (c *sqlCatalog) apply(ctx context.Context, ch change) (unknown bool, err error) {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	if err := c.within(ctx, tx, ch); err != nil {
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

func (c *sqlCatalog) within(ctx context.Context, tx *sql.Tx, ch change) error {
	row, err := c.ledger.read(ctx, tx, c.postgres)
	if err != nil {
		return err
	}
	if err := ch.allow(row); err != nil {
		return err
	}
	for _, m := range ch.moves {
		err := m.apply(ctx, tx)
		if err == nil && m.from.at == "" {
			err = c.note(ctx, tx, m.to.pointer)
		}
		if err != nil {
			return fmt.Errorf("table %s.%s: %w", m.to.namespace, m.to.name, err)
		}
	}
	if ch.entry == nil {
		return nil
	}
	return c.ledger.advance(ctx, tx, *ch.entry)
}

// apply points a table at its next metadata; from is without a place when the table is new.
func (m move) apply(ctx context.Context, tx *sql.Tx) error {
	if m.from.at == "" {
		if _, err := tx.ExecContext(ctx, `INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
			VALUES ($1, $2, 'exists', 'true') ON CONFLICT DO NOTHING`, catalogName, m.to.namespace); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
			VALUES ($1, $2, $3, $4, 'TABLE')`, catalogName, m.to.namespace, m.to.name, m.to.at)
		if isUnique(err) {
			return errMoved
		}
		return err
	}
	r, err := tx.ExecContext(ctx, `UPDATE iceberg_tables SET metadata_location = $1, previous_metadata_location = $2
		WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $2`,
		m.to.at, m.from.at, catalogName, m.to.namespace, m.to.name)
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
