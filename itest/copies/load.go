package copies

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// writers write at the same time, each to rows of its own: those whose n is its number modulo theirs.
const writers = 4

// Load is writers at work.
type Load struct {
	applied atomic.Int64
	cancel  context.CancelFunc
	done    sync.WaitGroup
	errs    [writers]error
}

// Open starts the writers over connections of their own, together at most rate transactions a second. rows is how many
// each table had at first.
func Open(ctx context.Context, connect func(context.Context) (*pgx.Conn, error), rows int, rate float64, seed uint64) (*Load, error) {
	l := &Load{}
	ctx, l.cancel = context.WithCancel(ctx)
	for i := range writers {
		conn, err := connect(ctx)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		w := &writer{
			load: l, conn: conn, number: int64(i), rows: int64(rows), rnd: rand.New(rand.NewPCG(seed, uint64(i))),
			pause: time.Duration(writers / rate * float64(time.Second)),
		}
		l.done.Go(func() {
			defer conn.Close(context.WithoutCancel(ctx))
			l.errs[i] = w.run(ctx)
		})
	}
	return l, nil
}

// Applied is the number of transactions so far, those that were rolled back among them.
func (l *Load) Applied() int64 { return l.applied.Load() }

// Close ends the writers, each between two transactions. It may be called twice.
func (l *Load) Close() error {
	l.cancel()
	l.done.Wait()
	return errors.Join(l.errs[:]...)
}

type writer struct {
	load   *Load
	conn   *pgx.Conn
	number int64
	rows   int64
	made   []int64 // names of rows it made
	rnd    *rand.Rand
	pause  time.Duration
}

func (w *writer) run(ctx context.Context) error {
	tick := time.NewTicker(w.pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.transaction(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("writer %d: %w", w.number, err)
		}
		w.load.applied.Add(1)
	}
}

// transaction makes a few changes: some of them are rolled back to a savepoint, some transactions as a whole, and some
// stay open for a while.
func (w *writer) transaction(ctx context.Context) error {
	sql := []string{"BEGIN"}
	tables := all()
	saved := w.rnd.IntN(4)
	for i := range 1 + w.rnd.IntN(8) {
		if i == saved {
			sql = append(sql, "SAVEPOINT s", w.change(tables[w.rnd.IntN(len(tables))]), "ROLLBACK TO s")
		}
		sql = append(sql, w.change(tables[w.rnd.IntN(len(tables))]))
	}
	if w.rnd.IntN(10) == 0 {
		sql = append(sql, "SELECT pg_sleep(0.3)")
	}
	end := "COMMIT"
	if w.rnd.IntN(10) == 0 {
		end = "ROLLBACK"
	}
	_, err := w.conn.Exec(ctx, strings.Join(append(sql, end), "; "))
	return err
}

// change is one statement. A row that is not there any more is not changed.
func (w *writer) change(t Table) string {
	n := w.pick()
	switch kind := w.rnd.IntN(10); {
	case kind < 2:
		return w.insert(t)
	case kind < 7:
		return fmt.Sprintf("UPDATE %s SET val = nextval('truth.value') WHERE %s", t.sql(), t.where(literal(n)))
	case kind == 9 && len(t.key) > 0:
		return fmt.Sprintf("UPDATE %s SET (%s, val) = ROW (%s, nextval('truth.value')) WHERE %s",
			t.sql(), t.lists(), t.row(literal(w.fresh())), t.where(literal(n)))
	}
	return fmt.Sprintf("DELETE FROM %s WHERE %s", t.sql(), t.where(literal(n)))
}

func (w *writer) insert(t Table) string {
	n := literal(w.fresh())
	return fmt.Sprintf("INSERT INTO %s (%s, val, pad) VALUES (%s, nextval('truth.value'), md5('%s'))", t.sql(), t.lists(), t.row(n), n)
}

func literal(n int64) string { return fmt.Sprintf("%d::bigint", n) }

// pick draws a row that was once there.
func (w *writer) pick() int64 {
	if len(w.made) > 0 && w.rnd.IntN(3) == 0 {
		return w.made[w.rnd.IntN(len(w.made))]
	}
	return w.rnd.Int64N(max(w.rows/writers, 1))*writers + w.number
}

func (w *writer) fresh() int64 {
	n := (w.rows/writers+1+int64(len(w.made)))*writers + w.number
	w.made = append(w.made, n)
	return n
}
