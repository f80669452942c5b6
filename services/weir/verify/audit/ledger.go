package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/verdict"
)

// Ledger reads the commits that a postgres sink has logged in a schema, oldest first. It is an error when the oldest
// ones are gone: then nothing can be said of them.
func Ledger(ctx context.Context, url, schema, job, sink string) ([]verdict.Applied, error) {
	conn, err := session(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	found, err := conn.Query(ctx, `SELECT epoch, digest, prev_epoch, prev_digest, fence, rows, at
		FROM `+pgx.Identifier{schema, "weir_ledger_log"}.Sanitize()+` WHERE job = $1 AND sink = $2 ORDER BY epoch`, job, sink)
	if err != nil {
		return nil, fmt.Errorf("read ledger of %s: %w", sink, err)
	}
	log, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (verdict.Applied, error) {
		a := verdict.Applied{LedgerID: verdict.LedgerID{Job: job, Sink: sink}}
		var at, prev, token, n int64
		err := row.Scan(&at, &a.Ref.Digest, &prev, &a.Prev.Digest, &token, &n, &a.At)
		a.Ref.Epoch, a.Prev.Epoch, a.Fence, a.Rows = epoch.ID(at), epoch.ID(prev), fence.Token(token), uint64(n)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger of %s: %w", sink, err)
	}
	return log, unbroken(log, sink)
}

// unbroken is an error when the oldest commits are gone.
func unbroken(log []verdict.Applied, sink string) error {
	if len(log) == 0 || !log[0].Prev.IsZero() {
		return fmt.Errorf("the ledger of %s does not begin with its first commit", sink)
	}
	return nil
}
