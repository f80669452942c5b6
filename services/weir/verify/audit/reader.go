package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Look is what one statement saw at a target.
type Look struct {
	// Torn counts what only half a source transaction can leave behind.
	Torn int64
	// Epoch and Fence are those of the ledger.
	Epoch, Fence int64
	// Rows are the rows of a changelog, Logged what the ledger says they are. Both zero where there is no changelog.
	Rows, Logged int64
}

// Reader looks at a target again and again while faults happen, as an application would.
type Reader struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	looks atomic.Int64
	last  Look
	wrong []error
}

// lookEvery leaves the machine to those that are under test.
const lookEvery = 60 * time.Millisecond

// share leaves a slow look's machine alone for so many times as long as the look took.
const share = 5

// CopyLook is the SQL of a [Look] at a copy in upsert mode; torn counts its halves of transactions.
func CopyLook(schema, job, sink, torn string) string {
	return fmt.Sprintf("SELECT (%s), epoch, fence, 0, 0 FROM %s.weir_ledger WHERE job = '%s' AND sink = '%s'", torn, schema, job, sink)
}

// LogLook is the SQL of a [Look] at a changelog of these tables.
func LogLook(schema, job, sink string, tables []string) string {
	return logLook(schema, job, sink, tables, "CAST(sum(rows) AS bigint)")
}

func logLook(schema, job, sink string, tables []string, sum string) string {
	counts := make([]string, len(tables))
	for i, table := range tables {
		counts[i] = "(SELECT count(*) FROM " + schema + "." + table + ")"
	}
	return fmt.Sprintf(`SELECT 0, epoch, fence, %s, (SELECT %s FROM %s.weir_ledger_log
		WHERE job = '%s' AND sink = '%s') FROM %[3]s.weir_ledger WHERE job = '%[4]s' AND sink = '%[5]s'`,
		strings.Join(counts, " + "), sum, schema, job, sink)
}

// StartReader looks until Stop. sql returns the fields of a [Look] in one row; an error of it is a target that is not
// there yet, or away. durable tells the newest durable epoch, asked after each look; ok is false when nobody knows.
func StartReader(ctx context.Context, url, sql string, durable func(context.Context) (epoch uint64, ok bool)) *Reader {
	var conn *pgx.Conn
	return StartLooks(ctx, lookEvery, durable, func(ctx context.Context, last bool) (now Look, err error) {
		if last {
			if conn != nil {
				err = conn.Close(ctx)
			}
			return now, err
		}
		if conn == nil || conn.IsClosed() {
			if conn, err = session(ctx, url); err != nil {
				conn = nil
				return now, err
			}
		}
		found, err := conn.Query(ctx, sql, pgx.QueryExecModeExec)
		if err != nil {
			return now, err
		}
		return pgx.CollectExactlyOneRow(found, pgx.RowToStructByPos[Look])
	})
}

// StartLooks is StartReader for any target, and so often at most: look returns what there is now, from one moment. Its last call asks it to let go of what
// it holds instead.
func StartLooks(ctx context.Context, every time.Duration, durable func(context.Context) (epoch uint64, ok bool),
	look func(ctx context.Context, last bool) (Look, error),
) *Reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &Reader{cancel: cancel}
	r.done.Go(func() {
		defer func() { _, _ = look(context.WithoutCancel(ctx), true) }() // nothing depends on it any more
		next := time.NewTimer(every)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			began := time.Now()
			now, err := look(ctx, false)
			next.Reset(max(every, share*time.Since(began)))
			if err != nil {
				continue
			}
			newest, known := durable(ctx)
			r.judge(now, newest, known)
		}
	})
	return r
}

func (r *Reader) judge(now Look, durable uint64, known bool) {
	say := func(format string, args ...any) {
		if len(r.wrong) < 5 {
			r.wrong = append(r.wrong, fmt.Errorf(format, args...))
		}
	}
	r.looks.Add(1)
	if now.Torn != 0 {
		say("epoch %d: %d halves of source transactions are visible", now.Epoch, now.Torn)
	}
	if now.Rows != now.Logged {
		say("epoch %d: %d rows are visible, the ledger says %d", now.Epoch, now.Rows, now.Logged)
	}
	if now.Epoch < r.last.Epoch || now.Fence < r.last.Fence {
		say("epoch %d of fence %d is visible after epoch %d of fence %d", now.Epoch, now.Fence, r.last.Epoch, r.last.Fence)
	}
	if known && uint64(now.Epoch) > durable {
		say("epoch %d is visible, durable is %d", now.Epoch, durable)
	}
	r.last = now
}

// Looks is how often it has looked so far.
func (r *Reader) Looks() int { return int(r.looks.Load()) }

// Stop ends the looking and returns what was wrong.
func (r *Reader) Stop() error {
	r.cancel()
	r.done.Wait()
	if len(r.wrong) > 0 {
		return fmt.Errorf("reader during the faults: %w", errors.Join(r.wrong...))
	}
	return nil
}
