package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

const (
	// settleMin and settleMax are the pauses between two looks at the transactions that are waited for.
	settleMin, settleMax = 5 * time.Millisecond, time.Second
	// settleWord is after how long a person is told what is waited for.
	settleWord = 10 * time.Second
	// plannerPause is the pause before a question is asked again that the server did not answer.
	plannerPause = time.Second
)

// planner answers the assigner's questions with SQL, beside the enumerator's loop.
type planner struct {
	target *pgrepl.Target
	log    *slog.Logger
	tables map[cdc.TableID]*capturedTable
	news   chan struct{} // holds a token when there may be an answer

	mu        sync.Mutex
	questions []cdc.Effect
	more      chan struct{}
	answers   []answer
	err       error
}

// answer is what the assigner is told.
type answer func(a *cdc.Assigner) error

func newPlanner(target *pgrepl.Target, log *slog.Logger, tables []capturedTable) *planner {
	return &planner{
		target: target, log: log, tables: byID(tables),
		news: make(chan struct{}, 1), more: make(chan struct{}, 1),
	}
}

// ask takes a question; it never waits.
func (p *planner) ask(q cdc.Effect) {
	p.mu.Lock()
	p.questions = append(p.questions, q)
	p.mu.Unlock()
	token(p.more)
}

// take returns the answers so far, or why there will be none any more.
func (p *planner) take() ([]answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.answers
	p.answers = nil
	return got, p.err
}

func (p *planner) next() (cdc.Effect, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.questions) == 0 {
		return nil, false
	}
	q := p.questions[0]
	p.questions = p.questions[1:]
	return q, true
}

func (p *planner) tell(a answer, err error) {
	p.mu.Lock()
	if err != nil {
		p.err = err
	} else {
		p.answers = append(p.answers, a)
	}
	p.mu.Unlock()
	token(p.news)
}

// run answers until ctx ends. What the server does not answer is asked again; only what never can be answered ends it.
func (p *planner) run(ctx context.Context) {
	sql := session{target: p.target}
	defer sql.close(ctx)
	for {
		q, ok := p.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-p.more:
			case <-sql.unused():
				sql.close(ctx)
			}
			continue
		}
		for {
			a, err := p.answer(ctx, &sql, q)
			if ctx.Err() != nil {
				return
			}
			if err == nil || fault.ClassOf(err) != fault.Transient {
				p.tell(a, err)
				break
			}
			p.log.WarnContext(ctx, "copy not planned", telemetry.Err(err))
			sql.close(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(plannerPause):
			}
		}
	}
}

func (p *planner) answer(ctx context.Context, sql *session, q cdc.Effect) (answer, error) {
	conn, err := sql.open(ctx)
	if err != nil {
		return nil, err
	}
	switch q := q.(type) {
	case cdc.AskBounds:
		bounds, last, err := p.bounds(ctx, conn, q)
		return func(a *cdc.Assigner) error { return a.Bounded(q.Table, q.After, bounds, last) }, p.target.Fault(err)
	case cdc.Settle:
		err := p.settle(ctx, conn)
		return func(a *cdc.Assigner) error { a.Settled(q.Round); return nil }, p.target.Fault(err)
	case cdc.Tell: // the enumerator's loop does these itself
	}
	return nil, fmt.Errorf("plan the copy: unknown question %T: %w", q, fault.Bug)
}

// bounds finds where the next chunks of a table begin: one walk along the key's index.
func (p *planner) bounds(ctx context.Context, conn *pgx.Conn, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
	t := p.tables[q.Table]
	if t == nil {
		return nil, false, fmt.Errorf("table %d is not captured: %w", q.Table, fault.Bug)
	}
	list := keyList(t)
	texts := make([]string, len(t.Key))
	for i, k := range t.Key {
		texts[i] = quoted(k.Name) + "::text"
	}
	var b strings.Builder
	var params [][]byte
	fmt.Fprintf(&b, "SELECT %s FROM (SELECT %s, row_number() OVER (ORDER BY %s) - 1 AS weir_n FROM %s", strings.Join(texts, ", "), list, list, t.from())
	if q.After != nil {
		b.WriteString(" WHERE ")
		if params, err = appendBound(&b, nil, t, ">=", q.After); err != nil {
			return nil, false, err
		}
	}
	fmt.Fprintf(&b, " ORDER BY %s LIMIT %d) AS weir_k WHERE weir_n > 0 AND weir_n %% %d = 0 ORDER BY weir_n", list, q.Rows*int64(q.Max)+1, q.Rows)
	result := conn.PgConn().ExecParams(ctx, b.String(), params, nil, nil, nil)
	for result.NextRow() {
		key, err := keyOf(t, result.Values())
		if err != nil {
			_, _ = result.Close()
			return nil, false, err
		}
		bounds = append(bounds, key)
	}
	_, err = result.Close()
	return bounds, len(bounds) < q.Max, err
}

// settle waits until every transaction has ended that has an id by now. A transaction is in progress for a snapshot until
// it is visible, however long ago its commit was logged.
func (p *planner) settle(ctx context.Context, conn *pgx.Conn) error {
	var until uint64
	if err := conn.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&until); err != nil {
		return err
	}
	pause, word := settleMin, time.Now().Add(settleWord)
	for {
		var oldest uint64
		if err := conn.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").Scan(&oldest); err != nil {
			return err
		}
		if oldest >= until {
			return nil
		}
		if now := time.Now(); now.After(word) {
			word = now.Add(settleWord)
			p.log.InfoContext(ctx, "copy waits for transactions that were open when the log began", slog.Uint64("oldest", oldest), slog.Uint64("until", until))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, settleMax)
		}
	}
}
