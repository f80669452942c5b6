package cdcpostgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/cdc/sourcetest"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
)

// The suite of database sources, on tables of every kind of key. O01, O02, O05 and O06 are in it as kinds: writers in the
// range that is being read, crashes between the last chunk and its epoch, several readers whose connections are killed.
func TestSource(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	cases := 0
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		mu.Lock()
		cases++
		name := fmt.Sprintf("suite_%d", cases)
		mu.Unlock()
		return openSuite(t, name)
	})
}

// openSuite makes a database for one case. ITEST_SEED repeats a run, as far as a server does.
func openSuite(t *testing.T, name string) sourcetest.Harness {
	t.Helper()
	if err := server.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	role, err := server.CreateRole(t.Context(), name, "REPLICATION SUPERUSER")
	if err != nil {
		t.Fatal(err)
	}
	db := &suiteDB{database: name, role: role.Name, keys: make(map[rows.TableID]suiteKey)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := db.close(ctx); err != nil {
			t.Error(err)
		}
	})
	return sourcetest.Harness{
		Connector: suiteConnector{life: name},
		Database:  db,
		Source: func(tables []rows.TableID, mode spec.SnapshotMode, chunkRows int) spec.Source {
			c := &spec.PostgresSource{
				Snapshot: spec.Snapshot{Mode: mode, ChunkRows: chunkRows}, Heartbeat: config.Duration(time.Second),
			}
			for _, id := range tables {
				p, err := spec.ParseTablePattern(string(id))
				if err != nil {
					t.Fatal(err)
				}
				c.Tables = append(c.Tables, p)
			}
			return spec.Source{Name: "db", Type: "postgres", Config: c}
		},
		Resolve: func(string) (string, error) { return server.URLAs(role, name), nil },
		Rows:    400, Rounds: 6, Seed: rig.Seed(t),
	}
}

// suiteConnector gives each case a life of its own, since the names of slots are the server's and not a database's.
type suiteConnector struct {
	cdcpostgres.Connector

	life string
}

func (c suiteConnector) OpenEnumerator(ctx context.Context, cfg source.Config) (source.Enumerator, error) {
	cfg.Life = c.life
	return c.Connector.OpenEnumerator(ctx, cfg)
}

func (c suiteConnector) OpenReader(ctx context.Context, cfg source.Config) (source.Reader, error) {
	cfg.Life = c.life
	return c.Connector.OpenReader(ctx, cfg)
}

// suiteKey is a kind of key in SQL: columns, the values they have for the row n, and what finds that row.
type suiteKey struct{ columns, values, where, end string }

// suiteKeys has %[1]s for the parameter that is n. Keys are in no order that n has, and of both signs.
var suiteKeys = map[sourcetest.KeyKind]suiteKey{
	sourcetest.IntegerKey:   {"id bigint PRIMARY KEY,", "%[1]s * 7 - 1000", "id = %[1]s * 7 - 1000", ""},
	sourcetest.CompositeKey: {"a int, b bigint,", "%[1]s %% 5, -%[1]s", "(a, b) = (%[1]s %% 5, -%[1]s)", ", PRIMARY KEY (a, b)"},
	sourcetest.TextKey: {
		`id text COLLATE "en-x-icu" PRIMARY KEY,`, textKey, "id = " + textKey, "",
	},
	sourcetest.UUIDKey: {"id uuid PRIMARY KEY,", "md5(%[1]s::text)::uuid", "id = md5(%[1]s::text)::uuid", ""},
	sourcetest.NoKey:   {"", "", "n = %[1]s", ""},
}

// textKey has letters that languages order otherwise than bytes do, and one that byte order puts behind all others.
const textKey = `(ARRAY['a','B','ä','Z','z','É','-','_','ß','日'])[%[1]s %% 10 + 1] || %[1]s`

func (k suiteKey) sql(format, n string) string {
	if format == "" {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// suiteDB is a database of the suite.
type suiteDB struct {
	database, role string
	commits        atomic.Int64

	mu   sync.Mutex
	keys map[rows.TableID]suiteKey
	idle []*pgx.Conn
}

var _ sourcetest.Database = (*suiteDB)(nil)

func (d *suiteDB) key(id rows.TableID) suiteKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys[id]
}

// with runs f on a connection that nobody else uses meanwhile.
func (d *suiteDB) with(ctx context.Context, f func(conn *pgx.Conn) error) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer d.release(conn)
	return f(conn)
}

func (d *suiteDB) acquire(ctx context.Context) (*pgx.Conn, error) {
	d.mu.Lock()
	if n := len(d.idle); n > 0 {
		conn := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		return conn, nil
	}
	d.mu.Unlock()
	return server.Connect(ctx, d.database)
}

func (d *suiteDB) release(conn *pgx.Conn) {
	if conn.IsClosed() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, conn)
}

// close gives the server back what the case held of it: its slots keep log that others would have to read through.
func (d *suiteDB) close(ctx context.Context) error {
	err := d.Kill(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.idle {
		err = errors.Join(err, conn.Close(ctx))
	}
	return errors.Join(err, server.Exec(ctx, "postgres",
		"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active AND database = $1", d.database))
}

func (d *suiteDB) Create(ctx context.Context, name string, kind sourcetest.KeyKind, content []sourcetest.Row) (rows.TableID, error) {
	k, ok := suiteKeys[kind]
	if !ok {
		return "", fmt.Errorf("no key of kind %s here", kind)
	}
	id := rows.TableID("public." + name)
	d.mu.Lock()
	d.keys[id] = k
	d.mu.Unlock()
	ns, vals := make([]int64, len(content)), make([]int64, len(content))
	for i, r := range content {
		ns[i], vals[i] = r.N, r.Val
	}
	return id, d.with(ctx, func(conn *pgx.Conn) error {
		ddl := fmt.Sprintf("CREATE TABLE %s (%s n bigint NOT NULL, val bigint NOT NULL%s)", id, k.columns, k.end)
		if kind == sourcetest.NoKey {
			ddl += fmt.Sprintf("; ALTER TABLE %s REPLICA IDENTITY FULL; CREATE INDEX ON %[1]s (n)", id)
		}
		if _, err := conn.Exec(ctx, ddl); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT %s n, val FROM unnest($1::bigint[], $2::bigint[]) AS r (n, val)",
			id, listed(k.sql(k.values, "n"))), ns, vals)
		return err
	})
}

// listed is a list of expressions that more follow.
func listed(values string) string {
	if values == "" {
		return ""
	}
	return values + ","
}

func (d *suiteDB) Read(ctx context.Context, table rows.TableID) (map[int64]int64, error) {
	content := make(map[int64]int64)
	return content, d.with(ctx, func(conn *pgx.Conn) error {
		found, err := conn.Query(ctx, "SELECT n, val FROM "+string(table))
		if err != nil {
			return err
		}
		var n, val int64
		_, err = pgx.ForEachRow(found, []any{&n, &val}, func() error {
			content[n] = val
			return nil
		})
		return err
	})
}

func (d *suiteDB) Kill(ctx context.Context) error {
	return server.Exec(ctx, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", d.role)
}

func (d *suiteDB) Begin(ctx context.Context) (sourcetest.Tx, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "BEGIN")
	return suiteTx{d, conn}, err
}

type suiteTx struct {
	*suiteDB

	conn *pgx.Conn
}

// one runs a statement that has to change one row.
func (x suiteTx) one(ctx context.Context, sql string, args ...any) error {
	tag, err := x.conn.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%d rows changed by %s", tag.RowsAffected(), strings.Fields(sql)[0])
	}
	return err
}

func (x suiteTx) Insert(ctx context.Context, table rows.TableID, r sourcetest.Row) error {
	k := x.key(table)
	return x.one(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%s $1, $2)", table, listed(k.sql(k.values, "$1::bigint"))), r.N, r.Val)
}

func (x suiteTx) Update(ctx context.Context, table rows.TableID, r sourcetest.Row) error {
	k := x.key(table)
	return x.one(ctx, fmt.Sprintf("UPDATE %s SET val = $2 WHERE %s", table, k.sql(k.where, "$1::bigint")), r.N, r.Val)
}

func (x suiteTx) Move(ctx context.Context, table rows.TableID, n int64, to sourcetest.Row) error {
	k := x.key(table)
	columns := "n, val"
	switch {
	case strings.HasPrefix(k.columns, "id"):
		columns = "id, " + columns
	case k.columns != "":
		columns = "a, b, " + columns
	}
	return x.one(ctx, fmt.Sprintf("UPDATE %s SET (%s) = ROW (%s $2::bigint, $3::bigint) WHERE %s",
		table, columns, listed(k.sql(k.values, "$2::bigint")), k.sql(k.where, "$1::bigint")), n, to.N, to.Val)
}

func (x suiteTx) Delete(ctx context.Context, table rows.TableID, n int64) error {
	k := x.key(table)
	return x.one(ctx, fmt.Sprintf("DELETE FROM %s WHERE %s", table, k.sql(k.where, "$1::bigint")), n)
}

// Commit ends the transaction some time after its last change, so that chunks are read while it is open.
func (x suiteTx) Commit(ctx context.Context) error {
	return x.end(ctx, fmt.Sprintf("SELECT pg_sleep(%d / 1000.0); COMMIT", x.commits.Add(1)%4*15))
}

func (x suiteTx) Rollback(ctx context.Context) error { return x.end(ctx, "ROLLBACK") }

func (x suiteTx) end(ctx context.Context, how string) error {
	defer x.release(x.conn)
	_, err := x.conn.Exec(ctx, how)
	return err
}
