package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/shop"
)

// till applies the shop's transactions until it is closed.
type till struct {
	applied func() int64
	close   func() error // ends the load after the transaction under way; may be repeated
}

func openShop(ctx context.Context, source *harness.Postgres, cfg config) (*till, error) {
	conn, err := source.Connect(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var applied atomic.Int64
	t := &till{applied: applied.Load}
	var failure error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Close(context.WithoutCancel(ctx))
		load := shop.Load{Rate: cfg.Rate, Applied: &applied}
		_, failure = shop.Run(ctx, conn, shop.New(cfg.Seed), load)
	}()
	t.close = func() error {
		cancel()
		<-done
		return failure
	}
	return t, nil
}

// pollEvery is how often the watcher looks.
const pollEvery = 20 * time.Millisecond

// watcher looks at the copy again and again, as an application would, with a query for what half a transaction leaves there.
type watcher struct {
	end func() (looks, torn int) // may be repeated
}

func watchCopy(ctx context.Context, target *harness.Postgres, sql string) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	var looks, torn int
	done := make(chan struct{})
	go func() {
		defer close(done)
		if sql == "" {
			return
		}
		conn, err := target.Connect(ctx, "postgres")
		if err != nil {
			return // no looks: the verdict says so
		}
		defer conn.Close(context.WithoutCancel(ctx))
		for pause(ctx, pollEvery) == nil {
			var orders int
			// An error is a copy without its tables yet: nothing to see.
			if err := conn.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&orders); err != nil {
				continue
			}
			looks++
			if orders > 0 {
				torn++
			}
		}
	}()
	return &watcher{end: func() (int, int) {
		cancel()
		<-done
		return looks, torn
	}}
}
