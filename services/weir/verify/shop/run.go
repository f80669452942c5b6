package shop

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Load says how much of a generator's output is applied, and how fast.
type Load struct {
	// Transactions is the number to apply, rolled back ones included; 0 is
	// without end.
	Transactions int
	// Rate is the number of transactions per second; 0 is as fast as the
	// database goes.
	Rate float64
	// Applied, if given, counts the transactions as they are applied.
	Applied *atomic.Int64
}

// Run draws transactions and applies them one after the other. It returns how
// many it applied. When ctx ends it stops after the transaction under way and
// returns no error: that is how a load without end is ended.
func Run(ctx context.Context, conn *pgx.Conn, g *Generator, load Load) (applied int, err error) {
	return drive(ctx, g, load, func(ctx context.Context, t Transaction) error { return Apply(ctx, conn, t) })
}

func drive(ctx context.Context, g *Generator, load Load, apply func(context.Context, Transaction) error) (applied int, err error) {
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for load.Transactions == 0 || applied < load.Transactions {
		if load.Rate > 0 {
			// Against the start, not the last one: a slow transaction is made up for.
			due := begin.Add(time.Duration(float64(applied) / load.Rate * float64(time.Second)))
			timer.Reset(time.Until(due))
			select {
			case <-ctx.Done():
				return applied, nil
			case <-timer.C:
			}
		}
		if ctx.Err() != nil {
			return applied, nil
		}
		tx := g.Next()
		// Not cut by ctx: the generator counts the transaction as applied.
		if err := apply(context.WithoutCancel(ctx), tx); err != nil {
			return applied, fmt.Errorf("transaction %d (%s): %w", applied+1, tx.Kind, err)
		}
		applied++
		if load.Applied != nil {
			load.Applied.Add(1)
		}
	}
	return applied, nil
}

// Apply runs one transaction.
func Apply(ctx context.Context, conn *pgx.Conn, t Transaction) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, s := range t.Statements {
		batch.Queue(s.SQL, s.Args...)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		_ = tx.Rollback(ctx) // the first error is the reason
		return err
	}
	if t.Rollback {
		return tx.Rollback(ctx)
	}
	return tx.Commit(ctx)
}
