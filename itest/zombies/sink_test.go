package zombies

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/plan"
)

// TestSinkFrozenInMidCommit: a committer that holds the ledger's row is stopped past its lease. Another takes the ledger
// over and commits; the first one wakes up inside its old transaction and must not get anything through.
func TestSinkFrozenInMidCommit(t *testing.T) {
	r := rig.Start(t, rig.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink, mesh.Sink},
		Rate:  80, Seed: rig.Seed(t),
	})
	r.Recovered(t, time.Now(), 0)

	conn, err := r.Target.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	lock := holdTable(t, conn)
	backend := committerWaits(t, r)
	head, err := r.Records.Now(t.Context(), rig.Job)
	if err != nil {
		t.Fatal(err)
	}
	node, err := r.Records.Holder(t.Context(), head, plan.CommitterOf(rig.Copy))
	if err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	z := freeze(t, r, node)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The server finishes the statement and waits for a client that is not there any more.
	inMidCommit(t, r, conn, backend)

	after, took := r.Recovered(t, frozen, head.Fence)
	if now, err := r.Records.Holder(t.Context(), after, plan.CommitterOf(rig.Copy)); err != nil || now == node {
		t.Fatalf("the committer is on %q, %v; it was on %q", now, err, node)
	}
	committedBy(t, r, uint64(after.Fence))
	t.Logf("frozen in mid-commit; another committer's next durable epoch after %.2f s", took.Seconds())

	z.comeBack(t)
	r.Verdict(t)
}

// holdTable makes the next commit wait inside its transaction. Readers are not held up. A commit under way may lock the tables in
// another order; the server then ends one of the two, and if that is this one it asks again.
func holdTable(tb testing.TB, conn *pgx.Conn) (lock pgx.Tx) {
	tb.Helper()
	const tables = "shop_copy.customers, shop_copy.orders, shop_copy.order_items, shop_copy.products"
	harness.Await(tb, 20*time.Second, "the tables of the copy", func(ctx context.Context) (err error) {
		// The transaction outlives this try.
		if lock, err = conn.Begin(tb.Context()); err != nil {
			return err
		}
		if _, err = lock.Exec(ctx, "LOCK TABLE "+tables+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return errors.Join(err, lock.Rollback(tb.Context()))
		}
		return nil
	})
	return lock
}

// committerWaits finds the session of the copy's committer that waits for the tables.
func committerWaits(tb testing.TB, r *rig.Rig) (backend int32) {
	tb.Helper()
	harness.Await(tb, 20*time.Second, "a commit that waits", func(ctx context.Context) (err error) {
		backend, err = harness.Value[int32](ctx, r.Target, "postgres", `SELECT pid FROM pg_stat_activity
			WHERE application_name LIKE 'weir:%:copy%' AND wait_event_type = 'Lock' AND xact_start IS NOT NULL LIMIT 1`)
		return err
	})
	return backend
}

// inMidCommit proves that the session still is inside its transaction and holds the ledger's row.
func inMidCommit(tb testing.TB, r *rig.Rig, conn *pgx.Conn, backend int32) {
	tb.Helper()
	harness.Await(tb, 2*time.Second, "the frozen committer's session to stand still", func(ctx context.Context) error {
		state, err := harness.Value[string](ctx, r.Target, "postgres",
			`SELECT coalesce(wait_event, state) FROM pg_stat_activity WHERE pid = $1 AND xact_start IS NOT NULL`, backend)
		if err == nil && state != "ClientRead" {
			err = fmt.Errorf("its state is %s", state)
		}
		return err
	})
	_, err := conn.Exec(tb.Context(), `SELECT FROM shop_copy.weir_ledger WHERE job = 'shop' AND sink = 'copy' FOR UPDATE NOWAIT`)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55P03" {
		tb.Fatalf("the frozen committer does not hold the ledger's row: %v", err)
	}
}

// committedBy waits until the ledger shows a commit of a fence.
func committedBy(tb testing.TB, r *rig.Rig, fence uint64) {
	tb.Helper()
	harness.Await(tb, 20*time.Second, "a commit of the new attempt", func(ctx context.Context) error {
		newest, err := harness.Value[int64](ctx, r.Target, "postgres",
			`SELECT max(fence) FROM shop_copy.weir_ledger_log WHERE job = 'shop' AND sink = 'copy'`)
		if err == nil && uint64(newest) < fence {
			err = fmt.Errorf("the newest commit is of fence %d, want %d", newest, fence)
		}
		return err
	})
}
