package verify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// myTarget is two sinks to MySQL: a copy and a changelog, each in a database with a ledger of its own.
type myTarget struct {
	myServer
	id string
}

func (p *myTarget) database(sink string) string { return p.id + "_" + sink }

func (p *myTarget) line() string { return p.url }

// spec: the copy has one writer, since a shop changes keys.
func (p *myTarget) spec(writers int, letters bool) string {
	return fmt.Sprintf(`
  copy: {from: [db], type: mysql, url: "${VERIFY_TARGET}", database: %s, mode: upsert, dlq: %t}
  log: {from: [db], type: mysql, url: "${VERIFY_TARGET}", database: %s, mode: changelog, writers: %d}`,
		p.database(copying), letters, p.database(logging), writers)
}

func (p *myTarget) parallel() bool { return true }

func (p *myTarget) sinks() []string { return []string{copying, logging} }

func (p *myTarget) begin(context.Context) error { return nil } // the sinks make their own

func (p *myTarget) watch(ctx context.Context, durable func(context.Context) (uint64, bool)) []*audit.Reader {
	of, at := p.database(copying), p.database(logging)
	return []*audit.Reader{
		audit.StartMySQLReader(ctx, p.url, audit.MySQLCopyLook(of, p.id, copying, shop.TornMySQL(of)), durable),
		audit.StartMySQLReader(ctx, p.url, audit.MySQLLogLook(at, p.id, logging, shop.Tables()), durable),
	}
}

func (p *myTarget) changes(ctx context.Context) ([]audit.Change, error) {
	return audit.MySQLChangelog(ctx, p.url, p.database(logging), p.id+"_shop", shopTables())
}

func (p *myTarget) content(ctx context.Context) (map[string]audit.Content, error) {
	return audit.MySQLContent(ctx, p.url, p.database(copying), shopTables())
}

func (p *myTarget) judged(context.Context) (bool, error) { return false, nil }

func (p *myTarget) ledger(ctx context.Context, sink string) ([]verdict.Applied, error) {
	return audit.MySQLLedger(ctx, p.url, p.database(sink), p.id, sink)
}

func (p *myTarget) ledgerAt(ctx context.Context, sink string) (int64, error) {
	return p.number(ctx, fmt.Sprintf("SELECT epoch FROM %s.weir_ledger WHERE job = '%s' AND sink = '%s'", p.database(sink), p.id, sink))
}

// hold keeps the copy's next commit inside its transaction: somebody else has locked the tables against writing.
func (p *myTarget) hold(ctx context.Context) (release func() error, err error) {
	conn, err := audit.MySQLSession(ctx, p.url)
	if err != nil {
		return nil, err
	}
	var tables []string
	for _, table := range shop.Tables() {
		tables = append(tables, p.database(copying)+"."+table+" READ")
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

// myCommitWord is what a committer sends to end its transaction: the statement's packet, behind its length.
const myCommitWord = "\x03COMMIT"

func (p *myTarget) before(ctx context.Context, t *trial) error {
	return t.cutCommit(ctx, myCommitWord, true)
}

func (p *myTarget) after(ctx context.Context, t *trial) error {
	return t.cutCommit(ctx, myCommitWord, false)
}

// within kills the committer while the target works inside its transaction.
func (p *myTarget) within(ctx context.Context, t *trial) error {
	return t.killHeld(ctx, "the committer inside its transaction")
}

func (p *myTarget) away(_ context.Context, t *trial) (what string, back func() error, err error) {
	return t.broken()
}

func (p *myTarget) slow(_ context.Context, t *trial) (what string, back func() error, err error) {
	return t.delayed(300 * time.Millisecond)
}

func (p *myTarget) spoil(ctx context.Context) error {
	return p.run(ctx, "ALTER TABLE "+p.database(copying)+".products ADD CONSTRAINT wholesome CHECK (name <> 'poison')")
}

func (p *myTarget) cure(ctx context.Context) error {
	return p.run(ctx, "ALTER TABLE "+p.database(copying)+".products DROP CONSTRAINT wholesome")
}

func (p *myTarget) end(ctx context.Context) error {
	var statements []string
	for _, sink := range p.sinks() {
		statements = append(statements, "DROP DATABASE IF EXISTS "+p.database(sink))
	}
	return p.run(ctx, statements...)
}
