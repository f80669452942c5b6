package sourcetest

import (
	"context"
	"math/rand/v2"
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
)

// passage is what a channel from a reader to the sink holds: rows, or a barrier.
type passage struct {
	batch   *rows.Batch
	barrier epoch.ID
}

// merge takes from the channels of all readers into one sink, in an order that it draws. After a barrier of one channel
// the channel waits for the others.
type merge struct {
	mu      sync.Mutex
	changed *sync.Cond
	rnd     *rand.Rand
	queues  [][]passage
	aligned []bool
	ended   bool
}

func newMerge(readers int, seed uint64) *merge {
	m := &merge{rnd: rand.New(rand.NewPCG(seed, 2)), queues: make([][]passage, readers), aligned: make([]bool, readers)}
	m.changed = sync.NewCond(&m.mu)
	return m
}

func (m *merge) put(reader int, p passage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[reader] = append(m.queues[reader], p)
	m.changed.Signal()
}

// run hands rows to apply and, when a barrier has come on every channel, the epoch to complete, until ctx ends or either
// fails.
func (m *merge) run(ctx context.Context, apply func(*rows.Batch) error, complete func(epoch.ID) error) error {
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ended = true
		m.changed.Signal()
	})
	defer stop()
	for {
		p, ok, all := m.next()
		if !ok {
			return nil
		}
		var err error
		switch {
		case p.batch != nil:
			err = apply(p.batch)
		case all:
			err = complete(p.barrier)
		}
		if err != nil {
			return err
		}
	}
}

// next waits for something to take. all says that it is the last barrier of an epoch.
func (m *merge) next() (p passage, ok, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if m.ended {
			return passage{}, false, false
		}
		var ready []int
		for i, q := range m.queues {
			if len(q) > 0 && !m.aligned[i] {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			m.changed.Wait()
			continue
		}
		i := ready[m.rnd.IntN(len(ready))]
		p, m.queues[i] = m.queues[i][0], m.queues[i][1:]
		if p.batch != nil {
			return p, true, false
		}
		m.aligned[i] = true
		for _, a := range m.aligned {
			if !a {
				return p, true, false
			}
		}
		clear(m.aligned)
		return p, true, true
	}
}
