package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// pgTarget is [twoSinks] of PostgreSQL.
type pgTarget struct {
	twoSinks
	url string
}

func newPGTarget(url, id string) *pgTarget {
	return &pgTarget{twoSinks{id: id, kind: "postgres", space: "schema", word: "COMMIT\x00"}, url}
}

func (p *pgTarget) line() string { return p.url }

func (p *pgTarget) watch(ctx context.Context, durable func(context.Context) (uint64, bool)) []*audit.Reader {
	of, at := p.schema(copying), p.schema(logging)
	return []*audit.Reader{
		audit.StartReader(ctx, p.url, audit.CopyLook(of, p.id, copying, shop.Torn(of)), durable),
		audit.StartReader(ctx, p.url, audit.LogLook(at, p.id, logging, shop.Tables()), durable),
	}
}

func (p *pgTarget) changes(ctx context.Context) ([]audit.Change, error) {
	return audit.Changelog(ctx, p.url, p.schema(logging), p.id+"_shop", shopTables())
}

func (p *pgTarget) content(ctx context.Context) (map[string]audit.Content, error) {
	return audit.PostgresContent(ctx, p.url, p.schema(copying), shopTables())
}

func (p *pgTarget) ledger(ctx context.Context, sink string) ([]verdict.Applied, error) {
	return audit.Ledger(ctx, p.url, p.schema(sink), p.id, sink)
}

func (p *pgTarget) ledgerAt(ctx context.Context, sink string) (int64, error) {
	return value[int64](ctx, p.url, "SELECT epoch FROM "+p.schema(sink)+".weir_ledger WHERE job = $1 AND sink = $2", p.id, sink)
}

// hold keeps the copy's next commit inside its transaction: somebody else has locked the tables.
func (p *pgTarget) hold(ctx context.Context) (release func() error, err error) {
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return nil, err
	}
	// A commit under way may lock the tables in another order; the server then ends one of the two, and this one asks again.
	err = eventually(ctx, func() error {
		_, err := conn.Exec(ctx, "BEGIN; LOCK TABLE "+inSchema(p.schema(copying))+" IN SHARE ROW EXCLUSIVE MODE")
		if err != nil {
			_, undo := conn.Exec(ctx, "ROLLBACK")
			err = errors.Join(err, undo)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return func() error { return conn.Close(context.WithoutCancel(ctx)) }, nil // ends the transaction
}

// heldUp waits for a commit of the copy inside its transaction, and returns the server's name of the session.
func (p *pgTarget) heldUp(ctx context.Context, t *trial) (commit string, err error) {
	var backend int32
	err = t.until(ctx, "a commit that waits", func(ctx context.Context) error {
		backend, err = value[int32](ctx, p.url, `SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l USING (pid)
			WHERE a.application_name LIKE 'weir:%' AND a.wait_event_type = 'Lock' AND a.xact_start IS NOT NULL AND NOT l.granted
			AND l.relation IN (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1) LIMIT 1`,
			p.schema(copying))
		return err
	})
	return fmt.Sprintf("session %d", backend), err
}

// stuck: the server has finished the statement and waits for a client that is not there any more.
func (p *pgTarget) stuck(ctx context.Context, t *trial, commit string) error {
	var backend int32
	if _, err := fmt.Sscanf(commit, "session %d", &backend); err != nil {
		return err
	}
	return t.until(ctx, "the stopped committer's session to stand still", func(ctx context.Context) error {
		state, err := value[string](ctx, p.url,
			`SELECT coalesce(wait_event, state) FROM pg_stat_activity WHERE pid = $1 AND xact_start IS NOT NULL`, backend)
		if err == nil && state != "ClientRead" {
			err = fmt.Errorf("its state is %s", state)
		}
		return err
	})
}

func (p *pgTarget) spoil(ctx context.Context) error {
	return run(ctx, p.url, "ALTER TABLE "+p.schema(copying)+".products ADD CONSTRAINT wholesome CHECK (name <> 'poison')")
}

func (p *pgTarget) cure(ctx context.Context) error {
	return run(ctx, p.url, "ALTER TABLE "+p.schema(copying)+".products DROP CONSTRAINT wholesome")
}

func (p *pgTarget) end(ctx context.Context) error {
	errs := []error{run(ctx, p.url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'weir:%`+p.id+`%'`)}
	for _, sink := range p.sinks() {
		errs = append(errs, run(ctx, p.url, "DROP SCHEMA IF EXISTS "+p.schema(sink)+" CASCADE"))
	}
	return errors.Join(errs...)
}
