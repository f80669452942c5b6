package mysql

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// The ledger's tables, in the database the sink writes to.
const (
	ledgerTable = "weir_ledger"
	// logTable has one row per commit, the newest logKept of each sink and up to logSlack more.
	logTable = "weir_ledger_log"
	// ownTable remembers which tables a sink has taken over and what it left them as.
	ownTable = "weir_ledger_tables"

	logKept  = 1000
	logSlack = 50
)

// ledger is the row of one (job, sink) in one database, as SQL.
type ledger struct {
	database, job, sink string
}

func (l ledger) name(table string) string { return quote(l.database) + "." + quote(table) }

// mine selects the lines of this sink.
func (l ledger) mine() string { return " WHERE job = " + text(l.job) + " AND sink = " + text(l.sink) }

// create makes database and tables when they are missing. It does not ask for the right to make a database that is there.
func (l ledger) create(ctx context.Context, s *session) error {
	found, err := s.query(ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = "+text(l.database)+
		" AND table_name IN ("+text(ledgerTable)+", "+text(logTable)+", "+text(ownTable)+")")
	if err != nil || found[0].number(0) == 3 {
		return err
	}
	found, err = s.query(ctx, "SELECT count(*) FROM information_schema.schemata WHERE schema_name = "+text(l.database))
	if err != nil {
		return err
	}
	if found[0].number(0) == 0 {
		if _, err := s.exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(l.database)); err != nil {
			return err
		}
	}
	const key = "job varchar(100) NOT NULL, sink varchar(40) NOT NULL, "
	for _, ddl := range []string{
		l.name(ledgerTable) + ` (` + key + `life varchar(100) NOT NULL, fence bigint NOT NULL, epoch bigint NOT NULL,
			digest varchar(200) NOT NULL, positions longtext NOT NULL, updated datetime(6) NOT NULL, PRIMARY KEY (job, sink))`,
		l.name(logTable) + ` (` + key + `epoch bigint NOT NULL, digest varchar(200) NOT NULL, prev_epoch bigint NOT NULL,
			prev_digest varchar(200) NOT NULL, fence bigint NOT NULL, ` + "`rows`" + ` bigint NOT NULL, dead bigint NOT NULL,
			at datetime(6) NOT NULL, PRIMARY KEY (job, sink, epoch))`,
		l.name(ownTable) + ` (` + key + `source varchar(500) NOT NULL, target varchar(64) NOT NULL, made tinyint NOT NULL,
			at datetime(6) NOT NULL, columns longtext, PRIMARY KEY (job, sink, source), UNIQUE (job, sink, target))`,
	} {
		if _, err := s.exec(ctx, "CREATE TABLE IF NOT EXISTS "+ddl+s.tableOptions()); err != nil {
			return err
		}
	}
	return nil
}

// read returns the row; the zero Row when there is none. With lock it waits for whoever holds the row.
func (l ledger) read(ctx context.Context, s *session, lock bool) (core.Row, error) {
	sql := "SELECT life, fence, epoch, digest FROM " + l.name(ledgerTable) + l.mine()
	if lock {
		sql += " FOR UPDATE"
	}
	found, err := s.query(ctx, sql)
	if err != nil || len(found) == 0 {
		return core.Row{}, err
	}
	r := found[0]
	return core.Row{Life: r.text(0), Fence: fence.Token(r.number(1)), Ref: epoch.Ref{Epoch: epoch.ID(r.number(2)), Digest: r.text(3)}}, nil
}

// take writes the claim of an attempt: a new row, or the fence of the one there. The row is locked when there is one.
func (l ledger) take(ctx context.Context, s *session, life string, own fence.Token) error {
	_, err := s.exec(ctx, "INSERT INTO "+l.name(ledgerTable)+" (job, sink, life, fence, epoch, digest, positions, updated) VALUES ("+
		text(l.job)+", "+text(l.sink)+", "+text(life)+", "+number(int64(own))+", 0, '', '{}', now(6)) ON DUPLICATE KEY UPDATE "+
		"updated = IF(life = VALUES(life) AND fence <= VALUES(fence), now(6), updated), "+
		"fence = IF(life = VALUES(life) AND fence <= VALUES(fence), VALUES(fence), fence)")
	return err
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

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
	at := number(int64(e.ref.Epoch))
	statements := []string{
		"UPDATE " + l.name(ledgerTable) + " SET epoch = " + at + ", digest = " + text(e.ref.Digest) +
			", positions = " + text(string(positions)) + ", updated = now(6)" + l.mine(),
		"INSERT INTO " + l.name(logTable) + " (job, sink, epoch, digest, prev_epoch, prev_digest, fence, `rows`, dead, at) VALUES (" +
			text(l.job) + ", " + text(l.sink) + ", " + at + ", " + text(e.ref.Digest) + ", " + number(int64(e.prev.Epoch)) + ", " +
			text(e.prev.Digest) + ", " + number(int64(e.fence)) + ", " + number(int64(e.rows)) + ", " + number(int64(e.dead)) + ", now(6))",
	}
	for _, sql := range statements {
		if _, err := s.exec(ctx, sql); err != nil {
			return err
		}
	}
	if e.ref.Epoch%logSlack != 0 {
		return nil
	}
	found, err := s.query(ctx, "SELECT epoch FROM "+l.name(logTable)+l.mine()+" ORDER BY epoch DESC LIMIT 1 OFFSET "+strconv.Itoa(logKept-1))
	if err != nil || len(found) == 0 {
		return err
	}
	_, err = s.exec(ctx, "DELETE FROM "+l.name(logTable)+l.mine()+" AND epoch < "+found[0].text(0))
	return err
}

// readKnown says what the sink remembers of the table of a source table. owned is whether it has taken one over; known is nil
// until its columns were made to fit once.
func (l ledger) readKnown(ctx context.Context, s *session, source rows.TableID) (known *core.Known, err error) {
	found, err := s.query(ctx, "SELECT columns FROM "+l.name(ownTable)+l.mine()+" AND source = "+text(string(source)))
	if err != nil || len(found) == 0 || found[0].null(0) {
		return nil, err
	}
	known = &core.Known{}
	if err := json.Unmarshal([]byte(found[0].text(0)), known); err != nil {
		return nil, fmt.Errorf("columns of %s in %s: %w", source, l.name(ownTable), err)
	}
	return known, nil
}

func (l ledger) writeKnown(ctx context.Context, s *session, source rows.TableID, k *core.Known) error {
	columns, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode the columns of %s: %w", source, err)
	}
	_, err = s.exec(ctx, "UPDATE "+l.name(ownTable)+" SET columns = "+text(string(columns))+l.mine()+" AND source = "+text(string(source)))
	return err
}

// ReadLedger reads a sink's ledger for people and audits. It changes nothing and takes no lock; a target without a ledger
// gives the zero value.
func ReadLedger(ctx context.Context, url, database, job, sink string) (core.Ledger, error) {
	at := transact.Place{Sink: "sinks." + sink, Job: job}
	srv, err := newServer(url, at)
	if err != nil {
		return core.Ledger{}, err
	}
	s, err := srv.open(ctx, at)
	if err != nil {
		return core.Ledger{}, err
	}
	defer s.close()
	// One snapshot for row and log, so that they agree.
	for _, sql := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"} {
		if _, err := s.exec(ctx, sql); err != nil {
			return core.Ledger{}, translate(ctx, err, at)
		}
	}
	out, err := ledger{database: database, job: job, sink: sink}.history(ctx, s)
	if hasNumber(err, noSuchTable) || hasNumber(err, 1049) {
		return core.Ledger{}, nil
	}
	return out, translate(ctx, err, at)
}

func (l ledger) history(ctx context.Context, s *session) (core.Ledger, error) {
	var out core.Ledger
	row, err := l.read(ctx, s, false)
	if err != nil || row == (core.Row{}) {
		return out, err
	}
	out.Life, out.Fence, out.Ref = row.Life, row.Fence, row.Ref
	found, err := s.query(ctx, "SELECT positions FROM "+l.name(ledgerTable)+l.mine())
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(found[0].text(0)), &out.Positions); err != nil {
		return out, fmt.Errorf("positions of the ledger row: %w", err)
	}
	found, err = s.query(ctx, "SELECT epoch, digest, prev_epoch, prev_digest, fence, `rows`, dead, at FROM "+l.name(logTable)+l.mine()+" ORDER BY epoch")
	if err != nil {
		return out, err
	}
	for _, r := range found {
		at, err := time.Parse("2006-01-02 15:04:05.999999", r.text(7))
		if err != nil {
			return out, fmt.Errorf("time of epoch %s in the ledger's log: %w", r.text(0), err)
		}
		out.Log = append(out.Log, core.Entry{
			Ref:   epoch.Ref{Epoch: epoch.ID(r.number(0)), Digest: r.text(1)},
			Prev:  epoch.Ref{Epoch: epoch.ID(r.number(2)), Digest: r.text(3)},
			Fence: fence.Token(r.number(4)), Rows: uint64(r.number(5)), Dead: uint64(r.number(6)), At: at,
		})
	}
	return out, nil
}
