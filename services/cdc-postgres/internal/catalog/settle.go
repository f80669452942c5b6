package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pauses between two looks at a transaction that is not visible yet.
const (
	settleMin = time.Millisecond
	settleMax = 250 * time.Millisecond
)

// Settle waits until everybody can see what a transaction of the log has done. The log has a transaction as soon as its
// commit is written; the server shows it a moment later, and where commits wait for a standby as late as that answers. The
// catalog is until then the one from before the transaction. A transaction holds the lock of its own number for a little
// longer still. On a standby there is nothing to wait for: its log ends where it has shown everything.
func Settle(ctx context.Context, conn *pgx.Conn, xid uint32) error {
	for pause := settleMin; ; pause = min(2*pause, settleMax) {
		var open bool
		err := conn.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND transactionid = $1 AND mode = 'ExclusiveLock' AND granted)`,
			xid).Scan(&open)
		if err != nil || !open {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
