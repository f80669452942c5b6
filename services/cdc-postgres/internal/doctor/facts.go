package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// Facts are what is known of a server and of one database of it.
type Facts struct {
	pgrepl.Server
	Role, Database string
	// Relayed says that another process answers at the address: a pooler or a proxy.
	Relayed bool
	// Service is the managed service that the settings show; empty when there is no sign of one.
	Service Service
	// KeepMiB is max_slot_wal_keep_size, -1 without a limit. IdleTimeout is idle_replication_slot_timeout, empty before 18
	// and when it is off.
	KeepMiB     int64
	IdleTimeout string
	Slots       []Slot
	// Transactions are those older than was asked for that have written something; Prepared are transactions that wait
	// for a second phase. SeesAll says that the role may see how old the transactions of others are; else Running is how
	// many there are.
	Transactions []Transaction
	Prepared     []Prepared
	SeesAll      bool
	Running      int
	// Standbys are the physical slots that somebody reads, Synchronized is synchronized_standby_slots, empty before 17.
	Standbys     []string
	Synchronized string
	// Publications are those with a name of Weir.
	Publications []string
}

// Slot is a replication slot of any database of the server.
type Slot struct {
	Name, Plugin, Database string
	ActivePID              int32
	WALStatus              string
	Retained               int64 // bytes of log
}

// Transaction is one that is open.
type Transaction struct {
	PID                int32
	Role, App, Session string
	Age                time.Duration
}

// Prepared is a transaction that is prepared and neither committed nor rolled back.
type Prepared struct {
	ID, Role, Database string
	Age                time.Duration
}

// Service is a managed service.
type Service string

// The services whose settings are known by name.
const (
	SelfManaged Service = ""
	RDS         Service = "Amazon RDS or Aurora"
	CloudSQL    Service = "Google Cloud SQL"
	Azure       Service = "Azure Database for PostgreSQL"
)

// Look asks the server. Transactions younger than old are left out.
func Look(ctx context.Context, conn *pgx.Conn, server pgrepl.Server, old time.Duration) (Facts, error) {
	f := Facts{Server: server}
	var backend uint32
	err := conn.QueryRow(ctx, `
SELECT current_user, current_database(), pg_backend_pid(),
       CASE WHEN EXISTS (SELECT FROM pg_settings WHERE name LIKE 'rds.%') THEN $1
            WHEN EXISTS (SELECT FROM pg_settings WHERE name LIKE 'cloudsql.%') THEN $2
            WHEN EXISTS (SELECT FROM pg_settings WHERE name LIKE 'azure.%') THEN $3 ELSE '' END,
       (SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
       coalesce(nullif(current_setting('idle_replication_slot_timeout', true), '0'), ''),
       coalesce(current_setting('synchronized_standby_slots', true), ''),
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       (SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND pid <> pg_backend_pid()),
       array(SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'physical' AND active ORDER BY 1),
       array(SELECT pubname::text FROM pg_publication WHERE starts_with(pubname, 'weir_') ORDER BY 1)`,
		string(RDS), string(CloudSQL), string(Azure)).Scan(
		&f.Role, &f.Database, &backend, &f.Service, &f.KeepMiB, &f.IdleTimeout, &f.Synchronized, &f.SeesAll, &f.Running,
		&f.Standbys, &f.Publications)
	if err != nil {
		return f, fmt.Errorf("look at the settings: %w", err)
	}
	f.Relayed = backend != conn.PgConn().PID()
	for _, look := range []func(context.Context, *pgx.Conn, time.Duration) error{f.slots, f.transactions, f.prepared} {
		if err := look(ctx, conn, old); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *Facts) slots(ctx context.Context, conn *pgx.Conn, _ time.Duration) error {
	rows, err := conn.Query(ctx, `
SELECT slot_name::text, coalesce(plugin::text, ''), coalesce(database::text, ''), coalesce(active_pid, 0), coalesce(wal_status, ''),
       coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
                                restart_lsn), 0)::bigint
FROM pg_replication_slots ORDER BY slot_name`)
	if err == nil {
		f.Slots, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Slot])
	}
	if err != nil {
		return fmt.Errorf("look at the slots: %w", err)
	}
	return nil
}

// transactions looks for what a new slot waits for: transactions with an id. Those that only read have none.
func (f *Facts) transactions(ctx context.Context, conn *pgx.Conn, old time.Duration) error {
	rows, err := conn.Query(ctx, `
SELECT pid, coalesce(usename::text, ''), coalesce(application_name, ''), coalesce(state, ''), clock_timestamp() - xact_start
FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND clock_timestamp() - xact_start >= make_interval(secs => $1)
ORDER BY xact_start`, old.Seconds())
	if err == nil {
		f.Transactions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Transaction])
	}
	if err != nil {
		return fmt.Errorf("look at the open transactions: %w", err)
	}
	return nil
}

func (f *Facts) prepared(ctx context.Context, conn *pgx.Conn, old time.Duration) error {
	rows, err := conn.Query(ctx, `
SELECT gid, owner::text, database::text, clock_timestamp() - prepared FROM pg_prepared_xacts
WHERE clock_timestamp() - prepared >= make_interval(secs => $1) ORDER BY prepared`, old.Seconds())
	if err == nil {
		f.Prepared, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Prepared])
	}
	if err != nil {
		return fmt.Errorf("look at the prepared transactions: %w", err)
	}
	return nil
}

func identifier(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
