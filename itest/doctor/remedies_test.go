package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

// old is the age of a slot and a publication of a job that nobody knows.
const lostLife = "weir_lost_0123456789abcdef"

// TestNothingIsWrong is the ground on which the other tests stand.
func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	p := admit(t, server, "well")
	if bad := ill(p.examine(t), ""); len(bad) > 0 {
		t.Errorf("%+v", bad)
	}
	// It changes nothing, in the target neither.
	if n, err := harness.Value[int](t.Context(), server, p.target(), "SELECT count(*) FROM pg_namespace WHERE nspname = 'copied'"); err != nil || n != 0 {
		t.Errorf("%d schemas are left behind, %v", n, err)
	}
}

// TestRemedies makes each thing wrong, executes what the doctor prints, and asks again.
func TestRemedies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		spoil  string // in the source database
		target string // in the target database
		source []string
		sink   []string
		check  string
		status preflight.Status
		code   fault.Code
	}{
		{name: "replication", spoil: "ALTER ROLE {role} NOREPLICATION", check: "replication_right", status: preflight.Error, code: fault.PGNoReplicationRight},
		{name: "usage", spoil: "CREATE SCHEMA s; CREATE TABLE s.x (id int PRIMARY KEY); ALTER TABLE s.x OWNER TO {role}", check: "select", status: preflight.Error, code: fault.PGNoSelect},
		{name: "select", spoil: "REVOKE SELECT ON t FROM {role}", check: "select", status: preflight.Error, code: fault.PGNoSelect},
		{name: "columns", spoil: "REVOKE SELECT ON t FROM {role}; GRANT SELECT (id, v) ON t TO {role}", check: "select", status: preflight.Error, code: fault.PGNoSelect},
		{name: "row_security", spoil: "ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY", check: "row_security", status: preflight.Error, code: fault.PGNoSelect},
		{name: "not_owner", spoil: "ALTER TABLE t OWNER TO postgres; GRANT SELECT ON t TO {role}", check: "publication", status: preflight.Error, code: fault.PGNoCreate},
		{name: "no_create", spoil: "ALTER DATABASE {db} OWNER TO postgres", check: "publication", status: preflight.Error, code: fault.PGNoCreate},
		{name: "no_publication", source: []string{"publication: given"}, check: "publication", status: preflight.Error, code: fault.PGPublicationMissing},
		{
			name: "operations", spoil: "CREATE PUBLICATION given FOR TABLE t WITH (publish = 'insert')", source: []string{"publication: given"},
			check: "publication", status: preflight.Error, code: fault.PGPublicationMissing,
		},
		{
			name: "unpublished", spoil: `CREATE TABLE "U x" (id int PRIMARY KEY); CREATE PUBLICATION "Given" FOR TABLE t`, source: []string{"publication: Given"},
			check: "publication_tables", status: preflight.Error, code: fault.PGPublicationTable,
		},
		{
			name: "via_root", source: []string{"publication: given"}, check: "publication_tables", status: preflight.Error, code: fault.PGPublicationTable,
			spoil: "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parts DEFAULT; " +
				"ALTER TABLE parts OWNER TO {role}; CREATE PUBLICATION given FOR TABLE t, parts",
		},
		{
			name: "filter", spoil: "CREATE PUBLICATION given FOR TABLE t WHERE (id > 0)", source: []string{"publication: given"},
			check: "publication_filter", status: preflight.Warning,
		},
		{
			name: "column_list", spoil: "CREATE PUBLICATION given FOR TABLE t (id)", source: []string{"publication: given"},
			check: "publication_filter", status: preflight.Warning,
		},
		{name: "no_slot", source: []string{"slot: given_to_no_slot"}, check: "slot", status: preflight.Error, code: fault.PGSlotMissing},
		{
			name: "other_plugin", spoil: "SELECT pg_create_logical_replication_slot('given_to_other_plugin', 'test_decoding')",
			source: []string{"slot: given_to_other_plugin"}, check: "slot", status: preflight.Error, code: fault.PGSlotForeign,
		},
		{name: "keyless", spoil: "CREATE TABLE k (id int); ALTER TABLE k OWNER TO {role}", sink: []string{"mode: changelog"}, check: "identity", status: preflight.Error, code: fault.PGNoIdentity},
		{
			name: "by_index", spoil: "CREATE TABLE k (id int NOT NULL UNIQUE); ALTER TABLE k OWNER TO {role}",
			check: "identity", status: preflight.Error, code: fault.PGNoIdentity,
		},
		{name: "identity_nothing", spoil: "ALTER TABLE t REPLICA IDENTITY NOTHING", check: "identity", status: preflight.Error, code: fault.PGNoIdentity},
		{name: "before", source: []string{"before: true"}, check: "identity", status: preflight.Error, code: fault.PGNoIdentity},
		{
			name: "no_key_upsert", spoil: "CREATE TABLE k (id int NOT NULL UNIQUE); ALTER TABLE k OWNER TO {role}; ALTER TABLE k REPLICA IDENTITY FULL",
			check: "key", status: preflight.Error, code: fault.SinkNoKey,
		},
		{name: "unlogged", spoil: "CREATE UNLOGGED TABLE u (id int PRIMARY KEY); ALTER TABLE u OWNER TO {role}", check: "not_captured", status: preflight.Warning},
		{name: "large_values", sink: []string{"mode: append"}, check: "large_values", status: preflight.Warning},
		{name: "left_slot", spoil: "SELECT pg_create_logical_replication_slot('" + lostLife + "_7', 'pgoutput')", check: "leftover_slot", status: preflight.Warning},
		{name: "left_publication", spoil: "CREATE PUBLICATION " + lostLife + " FOR TABLE t", check: "leftover_publication", status: preflight.Warning},

		{name: "no_schema", target: "REVOKE CREATE ON DATABASE {target} FROM {role}", check: "write", status: preflight.Error, code: fault.SinkMissingRight},
		{name: "schema_rights", target: "CREATE SCHEMA copied", check: "write", status: preflight.Error, code: fault.SinkMissingRight},
		{
			name: "ledger_rights", check: "write", status: preflight.Error, code: fault.SinkMissingRight,
			target: ledgerDDL + "; GRANT USAGE, CREATE ON SCHEMA copied TO {role}",
		},
		{
			name: "foreign_ledger", check: "ledger", status: preflight.Error, code: fault.JobLedgerForeign,
			target: ledgerDDL + "; ALTER SCHEMA copied OWNER TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA copied TO {role}; " +
				"INSERT INTO copied.weir_ledger VALUES ('foreign-ledger', 'copy', 'otherlife', 1, 5, 'd', '{}', now())",
		},
		{name: "target_key", target: "CREATE SCHEMA copied AUTHORIZATION {role}; CREATE TABLE copied.t (id int, v text); ALTER TABLE copied.t OWNER TO {role}", check: "key", status: preflight.Error, code: fault.SinkWrongKey},
		{
			name: "filled", target: "CREATE SCHEMA copied AUTHORIZATION {role}; CREATE TABLE copied.t (id int PRIMARY KEY, v text); ALTER TABLE copied.t OWNER TO {role}; INSERT INTO copied.t VALUES (1)",
			check: "table", status: preflight.Error, code: fault.SinkNotEmpty,
		},
		{
			name: "table_rights", target: "CREATE SCHEMA copied AUTHORIZATION {role}; CREATE TABLE copied.t (id int PRIMARY KEY, v text); GRANT SELECT ON copied.t TO {role}",
			check: "table_rights", status: preflight.Error, code: fault.SinkMissingRight,
		},
		{
			name: "generated_there", check: "columns", status: preflight.Error, code: fault.SinkSchemaChange,
			target: "CREATE SCHEMA copied AUTHORIZATION {role}; CREATE TABLE copied.t (id int PRIMARY KEY, v text GENERATED ALWAYS AS ('x') STORED); ALTER TABLE copied.t OWNER TO {role}",
		},
		{
			name: "required_there", check: "columns", status: preflight.Error, code: fault.SinkConstraint,
			target: "CREATE SCHEMA copied AUTHORIZATION {role}; CREATE TABLE copied.t (id int PRIMARY KEY, v text, more int NOT NULL); ALTER TABLE copied.t OWNER TO {role}",
		},
		{
			name: "target_columns", target: "CREATE SCHEMA copied AUTHORIZATION {role}; CREATE TABLE copied.t (id int PRIMARY KEY); GRANT ALL ON copied.t TO {role}",
			check: "columns", status: preflight.Error, code: fault.SinkMissingRight,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := admit(t, server, tt.name)
			p.source, p.sink = tt.source, tt.sink
			if tt.spoil != "" {
				p.exec(t, p.name, p.fill(tt.spoil))
			}
			if tt.target != "" {
				p.exec(t, p.target(), p.fill(tt.target))
			}
			before := p.examine(t)
			bad := ill(before, tt.check)
			if len(bad) != 1 || bad[0].Status != tt.status || code(bad) != tt.code {
				t.Fatalf("found %+v, want one %s of %s with code %q; all: %+v", bad, tt.status, tt.check, tt.code, ill(before, ""))
			}
			if p.treat(t, bad[0]) {
				t.Error("a restart is not needed for this")
			}
			if after := ill(p.examine(t), tt.check); len(after) > 0 {
				t.Errorf("after %+v still %+v", *bad[0].Remedy, after)
			}
		})
	}
}

// ledgerDDL makes the ledger of a sink as somebody else.
const ledgerDDL = `CREATE SCHEMA copied;
CREATE TABLE copied.weir_ledger (job text, sink text, life text NOT NULL, fence bigint NOT NULL, epoch bigint NOT NULL, digest text NOT NULL,
	positions jsonb NOT NULL, updated timestamptz NOT NULL, PRIMARY KEY (job, sink));
CREATE TABLE copied.weir_ledger_log (job text, sink text, epoch bigint, digest text NOT NULL, prev_epoch bigint NOT NULL, prev_digest text NOT NULL,
	fence bigint NOT NULL, rows bigint NOT NULL, dead bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (job, sink, epoch));
CREATE TABLE copied.weir_ledger_tables (job text, sink text, source text, target text NOT NULL, made boolean NOT NULL, at timestamptz NOT NULL, columns jsonb,
	PRIMARY KEY (job, sink, source), UNIQUE (job, sink, target))`

// TestServerRemedies treats a server of its own: settings that hold for all, some only after a restart.
func TestServerRemedies(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{
		"wal_level": "replica", "max_replication_slots": "0", "max_wal_senders": "0",
		"max_slot_wal_keep_size": "64MB", "max_prepared_transactions": "5",
	}})
	p := admit(t, pg, "ward")
	p.old = 0
	p.exec(t, "postgres", "REVOKE pg_read_all_stats FROM ward")
	p.exec(t, p.name, "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'it''s open'")
	stuck := open(t, pg, p.name)
	if _, err := stuck.Exec(t.Context(), "BEGIN; INSERT INTO t VALUES (2)"); err != nil {
		t.Fatal(err)
	}

	found := p.examine(t)
	// The role may not see how old the transactions of others are; that is a finding too, and not silence.
	unseen := ill(found, "transactions")
	if len(unseen) != 1 || len(unseen[0].Remedy.SQL) != 1 || !strings.Contains(unseen[0].Remedy.SQL[0], "pg_read_all_stats") {
		t.Fatalf("unseen transactions: %+v", unseen)
	}
	p.treat(t, unseen[0])
	found = p.examine(t)
	restart := false
	for _, check := range []string{"transactions", "prepared_transactions", "retention", "wal_level", "slots", "walsenders"} {
		bad := ill(found, check)
		if len(bad) != 1 {
			t.Fatalf("%s: %+v", check, bad)
		}
		restart = p.treat(t, bad[0]) || restart
	}
	if !restart {
		t.Error("wal_level needs a restart")
	}
	p.restart(t)
	if bad := ill(p.examine(t), ""); len(bad) > 0 {
		t.Errorf("after the treatment: %+v", bad)
	}
}

func open(t *testing.T, pg *harness.Postgres, database string) *pgx.Conn {
	t.Helper()
	conn, err := pg.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	})
	return conn
}
