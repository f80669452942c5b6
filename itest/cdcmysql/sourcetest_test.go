package cdcmysql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	protocol "github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/cdc/sourcetest"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// The suite of database sources, on tables of every kind of key: keys in the order of a language (O03) and of several columns (O04),
// attempts that end inside a rows event (O10), connections that break inside a transaction (O11), compressed or not (O28).
func TestSource(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		return openSuite(t, mysql, "suite_"+strings.ToLower(rand.Text()[:8]))
	})
}

// The same where transactions have no names, so that a place in a file is all there is to go on from (O12).
func TestSourceByPlace(t *testing.T) {
	t.Parallel()
	server := harness.StartMySQL(t, harness.MySQLConfig{NoGTID: true, Settings: map[string]string{"max_connections": "500"}})
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		return openSuite(t, server, "suite_"+strings.ToLower(rand.Text()[:8]))
	})
}

// The same on MariaDB, which has other names for transactions and makes snapshots of them in another way.
func TestSourceOnMariaDB(t *testing.T) {
	t.Parallel()
	server := harness.StartMariaDB(t, harness.MySQLConfig{})
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		return openSuite(t, server, "suite_"+strings.ToLower(rand.Text()[:8]))
	})
}

// openSuite makes a database for one case. ITEST_SEED repeats a run, as far as a server does.
func openSuite(t *testing.T, server *harness.MySQL, name string) sourcetest.Harness {
	t.Helper()
	if err := server.Exec(t.Context(), "", "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	role, err := server.CreateUser(t.Context(), name, "SELECT, REPLICATION SLAVE, REPLICATION CLIENT")
	if err != nil {
		t.Fatal(err)
	}
	db := &suiteDB{server: server, database: name, user: role.Name, keys: make(map[rows.TableID]suiteKey)}
	t.Cleanup(db.close)
	return sourcetest.Harness{
		Connector: suiteConnector{life: name},
		Database:  db,
		Source: func(tables []rows.TableID, mode spec.SnapshotMode, chunkRows int) spec.Source {
			c := &spec.MySQLSource{Snapshot: spec.Snapshot{Mode: mode, ChunkRows: chunkRows}}
			for _, id := range tables {
				p, err := spec.ParseTablePattern(string(id))
				if err != nil {
					t.Fatal(err)
				}
				c.Tables = append(c.Tables, p)
			}
			return spec.Source{Name: "db", Type: "mysql", Config: c}
		},
		Resolve: func(string) (string, error) { return server.URLAs(role, ""), nil },
		Rows:    400, Rounds: 6, Seed: rig.Seed(t),
	}
}

// suiteConnector gives each case a life of its own, since replicas are the server's and not a database's.
type suiteConnector struct {
	cdcmysql.Connector

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
type suiteKey struct{ columns, names, values, where, end string }

// suiteKeys has %[1]s for n. Keys are in no order that n has, and of both signs.
var suiteKeys = map[sourcetest.KeyKind]suiteKey{
	sourcetest.IntegerKey: {"id bigint PRIMARY KEY,", "id", "%[1]s * 7 - 1000", "id = %[1]s * 7 - 1000", ""},
	sourcetest.CompositeKey: {
		"a int, b bigint,", "a, b", "%[1]s MOD 5, -%[1]s", "a = %[1]s MOD 5 AND b = -%[1]s", ", PRIMARY KEY (a, b)",
	},
	sourcetest.TextKey: {
		"id varchar(40) CHARACTER SET utf8mb4 COLLATE %[1]s PRIMARY KEY,", "id", textKey, "id = " + textKey, "",
	},
	sourcetest.UUIDKey: {"id binary(16) PRIMARY KEY,", "id", "UNHEX(LEFT(SHA2(%[1]s, 256), 32))", "id = UNHEX(LEFT(SHA2(%[1]s, 256), 32))", ""},
	sourcetest.NoKey:   {"", "", "", "n = %[1]s", ", KEY (n)"},
}

// textKey has letters that languages order otherwise than bytes do, and one that byte order puts behind all others.
const textKey = `CONCAT(ELT(%[1]s MOD 10 + 1, 'a', 'B', 'ä', 'Z', 'z', 'É', '-', '_', 'ß', '日'), %[1]s)`

func (k suiteKey) sql(format string, n int64) string {
	if format == "" {
		return ""
	}
	return fmt.Sprintf(format, strconv.FormatInt(n, 10))
}

// more is a list that goes on.
func more(list string) string {
	if list == "" {
		return ""
	}
	return list + ", "
}

// suiteDB is a database of the suite.
type suiteDB struct {
	server         *harness.MySQL
	database, user string
	commits        atomic.Int64

	mu     sync.Mutex
	keys   map[rows.TableID]suiteKey
	idle   []*client.Conn
	opened int // connections, of which every other one compresses what it logs
}

var _ sourcetest.Database = (*suiteDB)(nil)

func (d *suiteDB) close() {
	for _, c := range d.idle {
		_ = c.Close()
	}
}

func (d *suiteDB) acquire(ctx context.Context) (*client.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.idle); n > 0 {
		c := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return c, nil
	}
	c, err := d.server.Connect(ctx, d.database)
	if err != nil {
		return nil, err
	}
	// Without locks on gaps two writers hardly ever wait for each other in a circle.
	_, err = c.Execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	if d.opened++; err == nil && d.opened%2 == 0 && !d.server.MariaDB() {
		_, err = c.Execute("SET SESSION binlog_transaction_compression = ON")
	}
	return c, err
}

func (d *suiteDB) release(c *client.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, c)
}

func (d *suiteDB) key(table rows.TableID) suiteKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys[table]
}

func (d *suiteDB) Create(ctx context.Context, name string, kind sourcetest.KeyKind, content []sourcetest.Row) (rows.TableID, error) {
	k, ok := suiteKeys[kind]
	if !ok {
		return "", fmt.Errorf("no key of kind %s here", kind)
	}
	id := rows.TableID(d.database + "." + name)
	d.mu.Lock()
	d.keys[id] = k
	d.mu.Unlock()
	conn, err := d.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer d.release(conn)
	if kind == sourcetest.TextKey {
		collation := "utf8mb4_0900_ai_ci"
		if d.server.MariaDB() {
			collation = "utf8mb4_unicode_ci"
		}
		k.columns = fmt.Sprintf(k.columns, collation)
	}
	if _, err := conn.Execute(fmt.Sprintf("CREATE TABLE %s (%s n bigint NOT NULL, val bigint NOT NULL%s)", id, k.columns, k.end)); err != nil {
		return "", err
	}
	for len(content) > 0 {
		part := content[:min(len(content), 200)]
		content = content[len(part):]
		values := make([]string, len(part))
		for i, r := range part {
			values[i] = fmt.Sprintf("(%s%d, %d)", more(k.sql(k.values, r.N)), r.N, r.Val)
		}
		if _, err := conn.Execute(fmt.Sprintf("INSERT INTO %s VALUES %s", id, strings.Join(values, ", "))); err != nil {
			return "", err
		}
	}
	return id, nil
}

func (d *suiteDB) Read(ctx context.Context, table rows.TableID) (map[int64]int64, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer d.release(conn)
	r, err := conn.Execute("SELECT n, val FROM " + string(table))
	if err != nil {
		return nil, err
	}
	content := make(map[int64]int64)
	for _, row := range r.Values {
		content[row[0].AsInt64()] = row[1].AsInt64()
	}
	return content, nil
}

func (d *suiteDB) Kill(ctx context.Context) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer d.release(conn)
	r, err := conn.Execute("SELECT id FROM information_schema.processlist WHERE user = '" + d.user + "'")
	if err != nil {
		return err
	}
	for _, row := range r.Values {
		_, _ = conn.Execute(fmt.Sprintf("KILL %d", row[0].AsInt64())) // it may have ended
	}
	return nil
}

func (d *suiteDB) Begin(ctx context.Context) (sourcetest.Tx, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Execute("BEGIN")
	return suiteTx{d, conn}, err
}

type suiteTx struct {
	*suiteDB

	conn *client.Conn
}

// one runs a statement that has to change one row.
func (x suiteTx) one(sql string) error {
	r, err := x.conn.Execute(sql)
	if my, ok := errors.AsType[*protocol.MyError](err); ok && my.Code == protocol.ER_LOCK_DEADLOCK {
		x.release(x.conn)
		return sourcetest.ErrRolledBack
	}
	if err == nil && r.AffectedRows != 1 {
		err = fmt.Errorf("%d rows changed by %s", r.AffectedRows, strings.Fields(sql)[0])
	}
	return err
}

func (x suiteTx) Insert(_ context.Context, table rows.TableID, r sourcetest.Row) error {
	k := x.key(table)
	return x.one(fmt.Sprintf("INSERT INTO %s VALUES (%s%d, %d)", table, more(k.sql(k.values, r.N)), r.N, r.Val))
}

func (x suiteTx) Update(_ context.Context, table rows.TableID, r sourcetest.Row) error {
	k := x.key(table)
	return x.one(fmt.Sprintf("UPDATE %s SET val = %d WHERE %s", table, r.Val, k.sql(k.where, r.N)))
}

func (x suiteTx) Move(_ context.Context, table rows.TableID, n int64, to sourcetest.Row) error {
	k := x.key(table)
	sets := fmt.Sprintf("n = %d, val = %d", to.N, to.Val)
	if k.names != "" {
		names, depth, from := strings.Split(k.names, ", "), 0, 0
		values := k.sql(k.values, to.N)
		var parts []string
		for i, c := range values {
			switch c {
			case '(':
				depth++
			case ')':
				depth--
			case ',':
				if depth == 0 {
					parts, from = append(parts, values[from:i]), i+1
				}
			}
		}
		for i, v := range append(parts, values[from:]) {
			sets += ", " + names[i] + " = " + v
		}
	}
	return x.one(fmt.Sprintf("UPDATE %s SET %s WHERE %s", table, sets, k.sql(k.where, n)))
}

func (x suiteTx) Delete(_ context.Context, table rows.TableID, n int64) error {
	k := x.key(table)
	return x.one(fmt.Sprintf("DELETE FROM %s WHERE %s", table, k.sql(k.where, n)))
}

// Commit ends the transaction some time after its last change, so that chunks are read while it is open.
func (x suiteTx) Commit(context.Context) error {
	if pause := x.commits.Add(1) % 4 * 15; pause > 0 {
		if _, err := x.conn.Execute(fmt.Sprintf("DO SLEEP(%d / 1000.0)", pause)); err != nil {
			return err
		}
	}
	return x.end("COMMIT")
}

func (x suiteTx) Rollback(context.Context) error { return x.end("ROLLBACK") }

func (x suiteTx) end(how string) error {
	defer x.release(x.conn)
	_, err := x.conn.Execute(how)
	return err
}
