package halves

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
)

const (
	// pause is how long a question waits that the server did not answer.
	pause = time.Second
	// patience is for how long it is asked again, before the attempt ends: whoever looks at the job has to see why it stands still.
	patience = 3 * time.Second
	// idle is after how long without a question the connections are given back: a copy ends, a job goes on.
	idle = 5 * time.Second
)

// Planner answers the assigner's questions with SQL. It is called from one goroutine. An error of class Transient makes the
// question be asked again, after Reset, for a few seconds.
type Planner interface {
	// Bounds finds where the next chunks of a table begin; see [cdc.AskBounds].
	Bounds(ctx context.Context, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error)
	// Settle waits as [cdc.Settle] says.
	Settle(ctx context.Context) error
	// Reset drops what may be broken: connections.
	Reset(ctx context.Context)
}

// answer is what the assigner is told.
type answer func(a *cdc.Assigner) error

// desk passes questions to a planner and answers back.
type desk struct {
	planner Planner
	log     *slog.Logger
	news    chan struct{} // holds a token when there may be an answer
	more    chan struct{} // holds a token when there may be a question

	mu        sync.Mutex
	questions []cdc.Effect
	answers   []answer
	err       error
}

func newDesk(p Planner, log *slog.Logger) *desk {
	return &desk{planner: p, log: log, news: make(chan struct{}, 1), more: make(chan struct{}, 1)}
}

// ask takes a question; it never waits.
func (d *desk) ask(q cdc.Effect) {
	d.mu.Lock()
	d.questions = append(d.questions, q)
	d.mu.Unlock()
	Token(d.more)
}

// take returns the answers so far, or why there will be none any more.
func (d *desk) take() ([]answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.answers
	d.answers = nil
	return got, d.err
}

func (d *desk) next() (cdc.Effect, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.questions) == 0 {
		return nil, false
	}
	q := d.questions[0]
	d.questions = d.questions[1:]
	return q, true
}

func (d *desk) put(a answer, err error) {
	d.mu.Lock()
	if err != nil {
		d.err = err
	} else {
		d.answers = append(d.answers, a)
	}
	d.mu.Unlock()
	Token(d.news)
}

// run answers until ctx ends.
func (d *desk) run(ctx context.Context) {
	defer d.planner.Reset(ctx)
	var unused <-chan time.Time // nil while nothing was asked since the last Reset
	for {
		q, ok := d.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-d.more:
			case <-unused:
				d.planner.Reset(ctx)
				unused = nil
			}
			continue
		}
		var failed time.Time // the first time
		for {
			a, err := d.answer(ctx, q)
			if ctx.Err() != nil {
				return
			}
			if err != nil && failed.IsZero() {
				failed = time.Now()
			}
			if err == nil || fault.ClassOf(err) != fault.Transient || time.Since(failed) >= patience {
				d.put(a, err)
				unused = time.After(idle)
				break
			}
			d.log.WarnContext(ctx, "copy not planned", telemetry.Err(err))
			d.planner.Reset(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

func (d *desk) answer(ctx context.Context, q cdc.Effect) (answer, error) {
	switch q := q.(type) {
	case cdc.AskBounds:
		bounds, last, err := d.planner.Bounds(ctx, q)
		return func(a *cdc.Assigner) error { return a.Bounded(q.Table, q.After, bounds, last) }, err
	case cdc.Settle:
		err := d.planner.Settle(ctx)
		return func(a *cdc.Assigner) error { a.Settled(q.Round); return nil }, err
	case cdc.Tell: // the enumerator's loop does these itself
	}
	return nil, fmt.Errorf("plan the copy: unknown question %T: %w", q, fault.Bug)
}
