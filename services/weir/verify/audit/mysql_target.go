package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/verdict"
)

// MySQLChangelog is [Changelog] of a mysql sink, whose schema is a database.
func MySQLChangelog(ctx context.Context, address, database, sourceSchema string, tables []Table) ([]Change, error) {
	conn, err := MySQLSession(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	k, err := kindsOf(conn, database)
	if err != nil {
		return nil, err
	}
	var all []placed
	for _, t := range tables {
		err := k.each(conn, "SELECT * FROM "+database+"."+t.Name, t.Name, func(row Cells) error {
			p, err := logged(row, sourceSchema+"."+t.Name, t.Key)
			all = append(all, p)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read changelog of %s: %w", t.Name, err)
		}
	}
	return inOrder(all), nil
}

// logged parts the row of a changelog into the source's columns and the changelog's own.
func logged(row Cells, table string, key []string) (placed, error) {
	r := line{cells: row}
	p := placed{seq: r.number("_seq"), Change: Change{
		Change: verdict.Change{
			Table: table, Op: rows.Op(r.number("_op")), Txn: uint64(r.number("_txn")), Ord: uint32(r.number("_ord")), Epoch: epoch.ID(r.number("_epoch")),
		},
		Cells: make(Cells),
	}}
	var absent []string
	if v := row["_absent"]; v != nil {
		r.fail(json.Unmarshal([]byte(*v), &absent))
	}
	for name, v := range row {
		if !strings.HasPrefix(name, "_") {
			p.Cells[name] = v
		}
	}
	for _, name := range absent {
		delete(p.Cells, name)
	}
	var err error
	p.Key, err = KeyOf(p.Cells, key)
	r.fail(err)
	return p, r.err
}

// line reads the columns of a row; the first that cannot be read is its error.
type line struct {
	cells Cells
	err   error
}

func (r *line) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *line) text(name string) string {
	v := r.cells[name]
	if v == nil {
		r.fail(fmt.Errorf("column %s is null or not there", name))
		return ""
	}
	return *v
}

func (r *line) number(name string) int64 {
	n, err := strconv.ParseInt(r.text(name), 10, 64)
	r.fail(err)
	return n
}

func (r *line) moment(name string) time.Time {
	at, err := time.Parse("2006-01-02 15:04:05.999999", r.text(name))
	r.fail(err)
	return at
}

// MySQLLedger is [Ledger] of a mysql sink.
func MySQLLedger(ctx context.Context, address, database, job, sink string) ([]verdict.Applied, error) {
	conn, err := MySQLSession(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	const table = "weir_ledger_log"
	k, err := kindsOf(conn, database)
	if err != nil {
		return nil, err
	}
	var log []verdict.Applied
	sql := fmt.Sprintf("SELECT * FROM %s.%s WHERE job = '%s' AND sink = '%s' ORDER BY epoch", database, table, job, sink)
	err = k.each(conn, sql, table, func(row Cells) error {
		r := line{cells: row}
		log = append(log, verdict.Applied{
			LedgerID: verdict.LedgerID{Job: job, Sink: sink},
			Ref:      epoch.Ref{Epoch: epoch.ID(r.number("epoch")), Digest: r.text("digest")},
			Prev:     epoch.Ref{Epoch: epoch.ID(r.number("prev_epoch")), Digest: r.text("prev_digest")},
			Fence:    fence.Token(r.number("fence")), Rows: uint64(r.number("rows")), At: r.moment("at"),
		})
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger of %s: %w", sink, err)
	}
	return log, unbroken(log, sink)
}

// MySQLLogLook is [LogLook] for MySQL.
func MySQLLogLook(database, job, sink string, tables []string) string {
	return logLook(database, job, sink, tables, "CAST(sum(`rows`) AS SIGNED)")
}

// StartMySQLReader is [StartReader] for MySQL. InnoDB reads all tables of a statement as of one moment, as long as it locks none.
func StartMySQLReader(ctx context.Context, address, sql string, durable func(context.Context) (epoch uint64, ok bool)) *Reader {
	var conn *client.Conn
	gone := func() (err error) {
		if conn != nil {
			err = conn.Close()
		}
		conn = nil
		return err
	}
	return StartLooks(ctx, lookEvery, durable, func(ctx context.Context, last bool) (now Look, err error) {
		if last {
			return now, gone()
		}
		if conn == nil {
			if conn, err = MySQLSession(ctx, address); err != nil {
				conn = nil
				return now, err
			}
		}
		r, err := conn.Execute(sql)
		if err != nil {
			_ = gone() // the error says enough
			return now, err
		}
		defer r.Close()
		if r.RowNumber() != 1 {
			return now, fmt.Errorf("%d rows", r.RowNumber())
		}
		for i, field := range []*int64{&now.Torn, &now.Epoch, &now.Fence, &now.Rows, &now.Logged} {
			if *field, err = r.GetInt(0, i); err != nil {
				return now, err
			}
		}
		return now, nil
	})
}
