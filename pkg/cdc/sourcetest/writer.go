package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/pkg/rows"
)

const (
	writers = 4
	// wideRows is the size of a transaction that is cut, cutRows the size from which it may be.
	wideRows = 150
	cutRows  = 40
)

// workload changes tables from several connections, each with rows of its own, as fast as the mesh lets it.
type workload struct {
	db     Database
	tables []rows.TableID
	value  *atomic.Int64
	pace   chan struct{} // one for each transaction
	ended  chan struct{} // one for each that has ended
	wideIn int           // one transaction in so many is wide

	mu      sync.Mutex
	written map[named][]int64 // every value that was committed, by row, in order

	group  *errgroup.Group
	cancel context.CancelFunc
	over   <-chan struct{} // closed when no writer writes any more; nil before the first
}

func newWorkload(db Database) *workload {
	w := &workload{db: db, value: new(atomic.Int64), pace: make(chan struct{}, 64), ended: make(chan struct{}, 64), wideIn: 20, written: make(map[named][]int64)}
	for range 20 {
		w.more(1)
	}
	return w
}

// more lets the writers do n transactions more.
func (w *workload) more(n int) {
	for range n {
		select {
		case w.pace <- struct{}{}:
		default:
		}
	}
}

// turn lets the writers go on until one has ended a transaction, so that however slow a database is, it is written to
// between any two chunks and any two epochs.
func (w *workload) turn(ctx context.Context) {
	if w.over == nil {
		return
	}
	w.more(2)
	for len(w.ended) > 0 { // those of before
		select {
		case <-w.ended:
		default:
		}
	}
	select {
	case <-w.ended:
	case <-w.over:
	case <-ctx.Done():
	}
}

// create makes a table with n rows.
func (w *workload) create(ctx context.Context, name string, kind KeyKind, n int) error {
	content := make([]Row, n)
	for i := range content {
		content[i] = Row{N: int64(i), Val: w.value.Add(1)}
	}
	id, err := w.db.Create(ctx, name, kind, content)
	if err != nil {
		return fmt.Errorf("create table %s: %w", name, err)
	}
	for _, r := range content {
		w.written[named{id, r.N}] = []int64{r.Val}
	}
	w.tables = append(w.tables, id)
	return nil
}

// start lets the writers begin.
func (w *workload) start(ctx context.Context, seed uint64, rowsAtFirst int) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.group, ctx = errgroup.WithContext(ctx)
	w.over = ctx.Done()
	for i := range writers {
		w.group.Go(func() error {
			return newWriter(w, i, seed, rowsAtFirst).run(ctx)
		})
	}
}

// stop ends the writers, if there are any, between two transactions.
func (w *workload) stop() error {
	if w.group == nil {
		return nil
	}
	w.cancel()
	return w.group.Wait()
}

// writer owns the rows whose n is its own number modulo the number of writers.
type writer struct {
	w    *workload
	rnd  *rand.Rand
	next int64
	own  map[rows.TableID]share
}

// share is which of its rows a writer has in a table, and which it had.
type share struct{ live, dead []int64 }

func newWriter(w *workload, i int, seed uint64, rowsAtFirst int) *writer {
	x := &writer{w: w, rnd: rand.New(rand.NewPCG(seed, uint64(i))), own: make(map[rows.TableID]share)}
	for _, t := range w.tables {
		var own share
		for n := i; n < rowsAtFirst; n += writers {
			own.live = append(own.live, int64(n))
		}
		x.own[t] = own
	}
	x.next = int64(rowsAtFirst/writers*writers + writers + i)
	return x
}

func (x *writer) run(ctx context.Context) error {
	for {
		select {
		case <-x.w.pace:
		case <-ctx.Done():
			return nil
		}
		// A transaction that has begun is ended, so that what was written is known.
		if err := x.transaction(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		select {
		case x.w.ended <- struct{}{}:
		default:
		}
	}
}

type written struct {
	named
	value int64
}

func (x *writer) transaction(ctx context.Context) error {
	tx, err := x.w.db.Begin(ctx)
	if err != nil {
		return err
	}
	changes := 1 + x.rnd.IntN(5)
	if x.rnd.IntN(x.w.wideIn) == 0 {
		changes = wideRows
	}
	own := make(map[rows.TableID]share)
	var done []written
	for range changes {
		t := x.w.tables[x.rnd.IntN(len(x.w.tables))]
		s, ok := own[t]
		if !ok {
			s = share{slices.Clone(x.own[t].live), slices.Clone(x.own[t].dead)}
		}
		more, err := x.change(ctx, tx, t, &s)
		if errors.Is(err, ErrRolledBack) {
			return nil
		}
		if err != nil {
			return err
		}
		own[t] = s
		done = append(done, more...)
	}
	if x.rnd.IntN(10) == 0 {
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	maps.Copy(x.own, own)
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for _, d := range done {
		x.w.written[d.named] = append(x.w.written[d.named], d.value)
	}
	return nil
}

// fresh returns an n that no row has; half of them some row had.
func (x *writer) fresh(s *share) int64 {
	if len(s.dead) > 0 && x.rnd.IntN(2) == 0 {
		i := x.rnd.IntN(len(s.dead))
		n := s.dead[i]
		s.dead = slices.Delete(s.dead, i, i+1)
		return n
	}
	x.next += writers
	return x.next - writers
}

// change makes one change and returns the values it wrote.
func (x *writer) change(ctx context.Context, tx Tx, t rows.TableID, s *share) ([]written, error) {
	value := x.w.value.Add(1)
	kind := x.rnd.IntN(10)
	if len(s.live) == 0 || kind < 3 {
		n := x.fresh(s)
		s.live = append(s.live, n)
		return []written{{named{t, n}, value}}, tx.Insert(ctx, t, Row{n, value})
	}
	i := x.rnd.IntN(len(s.live))
	n := s.live[i]
	switch {
	case kind < 6:
		return []written{{named{t, n}, value}}, tx.Update(ctx, t, Row{n, value})
	case kind < 8:
		s.live = slices.Delete(s.live, i, i+1)
		s.dead = append(s.dead, n)
		return []written{{named{t, n}, deleted}}, tx.Delete(ctx, t, n)
	default:
		to := x.fresh(s)
		s.live[i] = to
		s.dead = append(s.dead, n)
		return []written{{named{t, n}, deleted}, {named{t, to}, value}}, tx.Move(ctx, t, n, Row{to, value})
	}
}
