package mycopies

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/itest/harness"
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
func Open(ctx context.Context, server *harness.MySQL, rows int, rate float64, seed uint64) (*Load, error) {
	l := &Load{}
	ctx, l.cancel = context.WithCancel(ctx)
	for i := range writers {
		conn, err := connect(ctx, server)
		if err == nil {
			_, err = conn.Execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
		}
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		w := &writer{
			conn: conn, number: int64(i), rows: int64(rows), values: int64(rows), rnd: rand.New(rand.NewPCG(seed, uint64(i))),
			pause: time.Duration(writers / rate * float64(time.Second)),
		}
		l.done.Go(func() {
			defer func() { _ = conn.Close() }()
			l.errs[i] = w.run(ctx, &l.applied)
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
	conn   *client.Conn
	number int64
	rows   int64
	values int64   // that were given
	made   []int64 // names of rows it made
	rnd    *rand.Rand
	pause  time.Duration
}

func (w *writer) run(ctx context.Context, applied *atomic.Int64) error {
	tick := time.NewTicker(w.pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.transaction(); err != nil {
			return fmt.Errorf("writer %d: %w", w.number, err)
		}
		applied.Add(1)
	}
}

// transaction makes a few changes: some of them are rolled back to a savepoint, some transactions as a whole, and some
// stay open for a while. One that the server ends for a deadlock has not happened.
func (w *writer) transaction() error {
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
		sql = append(sql, "DO sleep(0.3)")
	}
	if w.rnd.IntN(10) == 0 {
		sql = append(sql, "ROLLBACK")
	} else {
		sql = append(sql, "COMMIT")
	}
	for _, s := range sql {
		_, err := w.conn.Execute(s)
		if refused, ok := errors.AsType[*mysql.MyError](err); ok && refused.Code == mysql.ER_LOCK_DEADLOCK {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// change is one statement. A row that is not there any more is not changed.
func (w *writer) change(t Table) string {
	n, val := w.pick(), w.value()
	set := fmt.Sprintf("UPDATE %s SET val = %d, price = %s, seen = %s", t.sql(), val, price(val), seen(val))
	switch kind := w.rnd.IntN(20); {
	case kind < 3:
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.sql(), t.fields(), t.row(w.fresh(), val))
	case kind < 4: // several rows by one statement
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s, %s", t.sql(), t.fields(), t.row(w.fresh(), val), t.row(w.fresh(), val))
	case kind < 5 && len(t.key) > 0: // inserted or changed, as it comes
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s ON DUPLICATE KEY UPDATE val = %d, price = %s, seen = %s",
			t.sql(), t.fields(), t.row(n, val), val, price(val), seen(val))
	case kind < 6 && len(t.key) > 0: // put in the place of the old row
		return fmt.Sprintf("REPLACE INTO %s (%s) VALUES %s", t.sql(), t.fields(), t.row(n, val))
	case kind < 8 && len(t.key) > 0: // another key
		to := w.fresh()
		assigned := []string{set, fmt.Sprintf("n = %d", to)}
		for i, v := range t.values(to) {
			assigned = append(assigned, t.key[i]+" = "+v)
		}
		return strings.Join(assigned, ", ") + " WHERE " + t.where(n)
	case kind < 10 && t.text(): // a key of other bytes, the same to the collation
		last := t.key[len(t.key)-1]
		return fmt.Sprintf("%s, %s = IF(BINARY %[2]s = BINARY lower(%[2]s), upper(%[2]s), lower(%[2]s)) WHERE %s", set, last, t.where(n))
	case kind < 17:
		return set + " WHERE " + t.where(n)
	}
	return "DELETE FROM " + t.sql() + " WHERE " + t.where(n)
}

// text reports whether the key ends with a text.
func (t Table) text() bool { return slices.Contains([]string{"by_both", "by_text"}, t.Name) }

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

// value is one that no row has had.
func (w *writer) value() int64 {
	w.values++
	return w.values*writers + w.number
}
