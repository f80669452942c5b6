package audit_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/shop"
)

// S1: the seed decides, and it does decide.
func TestGeneratorIsAFunctionOfItsSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) []shop.Transaction {
		g := shop.New(seed)
		var drawn []shop.Transaction
		for range 500 {
			drawn = append(drawn, g.Next())
		}
		return drawn
	}
	if !reflect.DeepEqual(draw(1), draw(1)) {
		t.Error("the same seed draws different transactions")
	}
	if reflect.DeepEqual(draw(1), draw(2)) {
		t.Error("different seeds draw the same transactions")
	}
}

// S2 and S3 on a real server, over every kind of transaction.
func TestTransactionsApply(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	if err := pg.Exec(ctx, "postgres", shop.Schema); err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(ctx, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)

	g := shop.New(7)
	seen := map[shop.Kind]int{}
	for i := range 1000 {
		tx := g.Next()
		seen[tx.Kind]++
		if err := shop.Apply(ctx, conn, tx); err != nil {
			t.Fatalf("transaction %d (%s): %v", i, tx.Kind, err)
		}
	}
	for _, kind := range shop.Kinds() {
		if seen[kind] == 0 {
			t.Errorf("no transaction of kind %s among 1000", kind)
		}
	}
	torn := func() int {
		n, err := harness.Value[int](ctx, pg, "postgres", shop.Torn("shop"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := torn(); n != 0 {
		t.Errorf("%d orders do not match their items", n)
	}
	for _, table := range shop.Tables() {
		if n, err := harness.Value[int](ctx, pg, "postgres", "SELECT count(*) FROM shop."+table); err != nil || n == 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
	// The check can fail.
	if err := pg.Exec(ctx, "postgres", "DELETE FROM shop.order_items WHERE line = 1"); err != nil {
		t.Fatal(err)
	}
	if torn() == 0 {
		t.Error("orders without their first item pass for whole")
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	if err := pg.Exec(t.Context(), "postgres", shop.Schema); err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	g := shop.New(1)

	start := time.Now()
	if n, err := shop.Run(t.Context(), conn, g, shop.Load{Transactions: 21, Rate: 100}); err != nil || n != 21 {
		t.Fatalf("Run = %d, %v; want 21", n, err)
	}
	if took := time.Since(start); took < 200*time.Millisecond {
		t.Errorf("21 transactions at 100 per second took only %s", took)
	}

	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		_, err := shop.Run(ctx, conn, g, shop.Load{})
		stopped <- err
	}()
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("an ended load returns %v", err)
	}
	// The generator still knows what the database holds.
	if n, err := shop.Run(t.Context(), conn, g, shop.Load{Transactions: 50}); err != nil || n != 50 {
		t.Errorf("going on after the end of ctx: %d, %v", n, err)
	}

	if err := pg.Exec(t.Context(), "postgres", "ALTER TABLE shop.orders RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := shop.Run(t.Context(), conn, g, shop.Load{}); err == nil {
		t.Error("a load whose table is gone goes on")
	}
}
