package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strconv"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/verdict"
)

// Binlog is the [Oracle] of a MySQL or MariaDB source: a second reader of its binary log, from a place on. The server has GTIDs, full
// images and full metadata. Rows are decoded by the library, of which a source of Weir uses the framing only.
type Binlog struct {
	url    *url.URL
	schema string
	flavor string
	tables []Table
	from   mysql.Position
	kinds  kinds
}

// OpenBinlog notes where the log is now. The tables of the schema are there.
func OpenBinlog(ctx context.Context, address, schema string, tables []Table) (*Binlog, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("open oracle: %w", err)
	}
	b := &Binlog{url: u, schema: schema, tables: tables}
	conn, err := MySQLSession(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open oracle: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if b.flavor = mysql.MySQLFlavor; IsMariaDB(conn) {
		b.flavor = mysql.MariaDBFlavor
	}
	if b.from, err = place(conn); err != nil {
		return nil, fmt.Errorf("open oracle: %w", err)
	}
	return b, nil
}

// place is where the server writes next.
func place(conn *client.Conn) (mysql.Position, error) {
	r, err := conn.Execute("SHOW BINARY LOG STATUS")
	if err != nil { // before 8.2, and MariaDB
		r, err = conn.Execute("SHOW MASTER STATUS")
	}
	if err != nil {
		return mysql.Position{}, err
	}
	file, err := r.GetString(0, 0)
	if err != nil {
		return mysql.Position{}, err
	}
	at, err := r.GetInt(0, 1)
	return mysql.Position{Name: file, Pos: uint32(at)}, err
}

// Changes reads everything that was committed since the oracle was opened, in the order of the log, as a changelog has it: an update
// of a key is a delete and an insert.
func (b *Binlog) Changes(ctx context.Context) ([]Change, error) {
	conn, err := MySQLSession(ctx, b.url.String())
	if err != nil {
		return nil, fmt.Errorf("read oracle: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if b.kinds, err = kindsOf(conn, b.schema); err != nil {
		return nil, fmt.Errorf("read oracle: %w", err)
	}
	to, err := place(conn)
	if err != nil {
		return nil, fmt.Errorf("read oracle: %w", err)
	}
	port, err := strconv.ParseUint(b.url.Port(), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("read oracle: %w", err)
	}
	password, _ := b.url.User.Password()
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 1<<30 + rand.Uint32N(1<<30), Flavor: b.flavor, Host: b.url.Hostname(), Port: uint16(port),
		User: b.url.User.Username(), Password: password, DisableRetrySync: true, Logger: slog.New(slog.DiscardHandler),
	})
	defer syncer.Close()
	stream, err := syncer.StartSync(b.from)
	if err != nil {
		return nil, fmt.Errorf("read oracle: %w", err)
	}
	r := binlogReader{Binlog: b, file: b.from.Name}
	for at := b.from; at.Compare(to) < 0; {
		e, err := stream.GetEvent(ctx)
		if err == nil {
			err = r.take(e)
		}
		if err != nil {
			return nil, fmt.Errorf("read oracle: %w", err)
		}
		at = mysql.Position{Name: r.file, Pos: max(e.Header.LogPos, 4)}
	}
	return r.changes, nil
}

// binlogReader turns events into changes.
type binlogReader struct {
	*Binlog
	file    string
	changes []Change
	txn     uint64
	ord     uint32
}

func (r *binlogReader) take(e *replication.BinlogEvent) error {
	switch ev := e.Event.(type) {
	case *replication.RotateEvent:
		r.file = string(ev.NextLogName)
	case *replication.GTIDEvent:
		r.txn, r.ord = uint64(ev.GNO), 0
	case *replication.MariadbGTIDEvent:
		r.txn, r.ord = ev.GTID.SequenceNumber, 0
	case *replication.RowsEvent:
		if string(ev.Table.Schema) == r.schema {
			return r.rows(ev)
		}
	}
	return nil // statements, commits, what the server says of itself
}

func (r *binlogReader) rows(e *replication.RowsEvent) error {
	table := string(e.Table.Table)
	columns := e.Table.ColumnNameString()
	if len(columns) == 0 {
		return errors.New("the log has no names of columns: binlog_row_metadata is not FULL")
	}
	for i := 0; i < len(e.Rows); i++ {
		var err error
		switch e.Type() {
		case replication.EnumRowsEventTypeInsert:
			err = r.add(rows.OpInsert, table, columns, e.Rows[i])
		case replication.EnumRowsEventTypeDelete:
			err = r.add(rows.OpDelete, table, columns, e.Rows[i])
		case replication.EnumRowsEventTypeUpdate:
			err = r.update(table, columns, e.Rows[i], e.Rows[i+1])
			i++
		default:
			err = fmt.Errorf("an event of type %s", e.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *binlogReader) update(table string, columns []string, before, after []any) error {
	old, err := r.keyOf(table, columns, before)
	if err != nil {
		return err
	}
	now, err := r.keyOf(table, columns, after)
	if err != nil {
		return err
	}
	if old == now {
		return r.add(rows.OpUpdateAfter, table, columns, after)
	}
	return errors.Join(r.add(rows.OpDelete, table, columns, before), r.add(rows.OpInsert, table, columns, after))
}

func (r *binlogReader) keyOf(table string, columns []string, values []any) (string, error) {
	for _, t := range r.tables {
		if t.Name == table {
			return KeyOf(r.kinds.cells(table, columns, values), t.Key)
		}
	}
	return "", fmt.Errorf("a change of table %s, which no load makes", table)
}

func (r *binlogReader) add(op rows.Op, table string, columns []string, values []any) error {
	key, err := r.keyOf(table, columns, values)
	if err != nil {
		return err
	}
	r.changes = append(r.changes, Change{
		Change: verdict.Change{Table: r.schema + "." + table, Key: key, Op: op, Txn: r.txn, Ord: r.ord},
		Cells:  r.kinds.cells(table, columns, values),
	})
	r.ord++
	return nil
}

// Content reads the tables in one snapshot.
func (b *Binlog) Content(ctx context.Context) (map[string]Content, error) {
	return MySQLContent(ctx, b.url.String(), b.schema, b.tables)
}
