package verify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// myTarget is [twoSinks] of MySQL or MariaDB, each in a database of its own.
type myTarget struct {
	twoSinks
	myServer
}

func newMyTarget(url, id string) *myTarget {
	return &myTarget{twoSinks{id: id, kind: "mysql", space: "database", word: "\x03COMMIT"}, myServer{url}} // a packet, behind its length
}

func (p *myTarget) line() string { return p.url }

func (p *myTarget) watch(ctx context.Context, durable func(context.Context) (uint64, bool)) []*audit.Reader {
	of, at := p.schema(copying), p.schema(logging)
	return []*audit.Reader{
		audit.StartMySQLReader(ctx, p.url, audit.CopyLook(of, p.id, copying, shop.TornMySQL(of)), durable),
		audit.StartMySQLReader(ctx, p.url, audit.MySQLLogLook(at, p.id, logging, shop.Tables()), durable),
	}
}

func (p *myTarget) changes(ctx context.Context) ([]audit.Change, error) {
	return audit.MySQLChangelog(ctx, p.url, p.schema(logging), p.id+"_shop", shopTables())
}

func (p *myTarget) content(ctx context.Context) (map[string]audit.Content, error) {
	return audit.MySQLContent(ctx, p.url, p.schema(copying), shopTables())
}

func (p *myTarget) ledger(ctx context.Context, sink string) ([]verdict.Applied, error) {
	return audit.MySQLLedger(ctx, p.url, p.schema(sink), p.id, sink)
}

func (p *myTarget) ledgerAt(ctx context.Context, sink string) (int64, error) {
	return p.number(ctx, fmt.Sprintf("SELECT epoch FROM %s.weir_ledger WHERE job = '%s' AND sink = '%s'", p.schema(sink), p.id, sink))
}

// hold keeps the copy's next commit inside its transaction: somebody else has locked the tables against writing.
func (p *myTarget) hold(ctx context.Context) (release func() error, err error) {
	conn, err := audit.MySQLSession(ctx, p.url)
	if err != nil {
		return nil, err
	}
	var tables []string
	for _, table := range shop.Tables() {
		tables = append(tables, p.schema(copying)+"."+table+" READ")
	}
	if _, err := conn.Execute("LOCK TABLES " + strings.Join(tables, ", ")); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn.Close, nil // which unlocks them
}

// heldUp waits for a commit of the copy inside its transaction, and returns the server's number of the session.
func (p *myTarget) heldUp(ctx context.Context, t *trial) (commit string, err error) {
	err = t.until(ctx, "a commit that waits", func(ctx context.Context) error {
		id, err := p.session(ctx, func(s session) bool {
			return strings.HasPrefix(s.state, "Waiting for table") && changesRows.MatchString(s.statement)
		})
		commit = fmt.Sprintf("session %d", id)
		return err
	})
	return commit, err
}

// changesRows matches what a commit does to a table.
var changesRows = regexp.MustCompile(`^(INSERT|UPDATE|DELETE|REPLACE)\b`)

// stuck: the server has finished the statement and waits for a client that is not there any more.
func (p *myTarget) stuck(ctx context.Context, t *trial, commit string) error {
	var id int64
	if _, err := fmt.Sscanf(commit, "session %d", &id); err != nil {
		return err
	}
	return t.until(ctx, "the stopped committer's session to stand still", func(ctx context.Context) error {
		if _, err := p.session(ctx, func(s session) bool { return s.id == id && s.command == "Sleep" }); err != nil {
			return err
		}
		n, err := p.number(ctx, fmt.Sprintf("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = %d", id))
		if err == nil && n == 0 {
			err = errors.New("it is in no transaction")
		}
		return err
	})
}

func (p *myTarget) spoil(ctx context.Context) error {
	return p.run(ctx, "ALTER TABLE "+p.schema(copying)+".products ADD CONSTRAINT wholesome CHECK (name <> 'poison')")
}

func (p *myTarget) cure(ctx context.Context) error {
	return p.run(ctx, "ALTER TABLE "+p.schema(copying)+".products DROP CONSTRAINT wholesome")
}

func (p *myTarget) end(ctx context.Context) error {
	var statements []string
	for _, sink := range p.sinks() {
		statements = append(statements, "DROP DATABASE IF EXISTS "+p.schema(sink))
	}
	return p.run(ctx, statements...)
}
