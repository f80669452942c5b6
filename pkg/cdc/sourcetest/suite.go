package sourcetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir.dev/weir/pkg/spec"
)

// patience is how long a case may take before it is said to hang.
const patience = 2 * time.Minute

// scenario is one case of the suite.
type scenario struct {
	name string
	run  func(ctx context.Context, h Harness) error
}

// keyed are the kinds of keys that tables in the copy of several readers have.
func keyed() []KeyKind { return []KeyKind{IntegerKey, CompositeKey, TextKey, UUIDKey, NoKey} }

func scenarios() []scenario {
	all := []scenario{
		{"a quiet database", quiet},
		{"empty tables", empty},
		{"crashes under writers", func(ctx context.Context, h Harness) error { return crashes(ctx, h, keyed()...) }},
		{"crashes without a snapshot", never},
		{"wide transactions", wide},
		{"killed connections", killed},
		{"drained in the snapshot", drained},
		{"only a snapshot", only},
	}
	for _, k := range keyed() {
		all = append(all, scenario{"writers on keys of kind " + string(k), func(ctx context.Context, h Harness) error {
			h.Rounds = 2
			return crashes(ctx, h, k)
		}})
	}
	return all
}

// Run runs the suite. open gives each case a harness, with a database of its own.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := s.run(ctx, h); err != nil {
				t.Fatalf("seed %d: %v", h.Seed, err)
			}
		})
	}
}

// quiet copies without writers; every row is read.
func quiet(ctx context.Context, h Harness) error {
	m, err := newMesh(ctx, h, spec.SnapshotInitial, keyed()...)
	if err != nil {
		return err
	}
	return m.settle(ctx)
}

// empty copies tables without rows, into which rows come later.
func empty(ctx context.Context, h Harness) error {
	h.Rows = -1
	m, err := newMesh(ctx, h, spec.SnapshotInitial, keyed()...)
	if err != nil {
		return err
	}
	m.load.start(ctx, h.Seed, 0)
	return m.settle(ctx)
}

// crashes copies and follows while writers write, through attempts that end anywhere.
func crashes(ctx context.Context, h Harness, kinds ...KeyKind) error {
	m, err := newMesh(ctx, h, spec.SnapshotInitial, kinds...)
	if err != nil {
		return err
	}
	m.load.start(ctx, h.Seed, m.h.Rows)
	for range m.h.Rounds {
		if err := m.round(ctx, false); err != nil {
			return err
		}
	}
	return m.settle(ctx)
}

// wide is about transactions that epochs and crashes cut in the middle.
func wide(ctx context.Context, h Harness) error {
	m, err := newMesh(ctx, h, spec.SnapshotInitial, IntegerKey, TextKey)
	if err != nil {
		return err
	}
	m.load.wideIn = 2
	m.load.start(ctx, h.Seed, m.h.Rows)
	for range 2 * m.h.Rounds {
		if err := m.round(ctx, false); err != nil {
			return err
		}
	}
	return m.settle(ctx)
}

// never follows the log of tables that are empty when it begins.
func never(ctx context.Context, h Harness) error {
	h.Rows = -1
	m, err := newMesh(ctx, h, spec.SnapshotNever, keyed()...)
	if err != nil {
		return err
	}
	a, err := m.start(ctx, 2)
	if err != nil {
		return err
	}
	if err := m.commit(ctx, a); err != nil {
		return err
	}
	if err := a.crash(); err != nil {
		return err
	}
	m.load.start(ctx, m.h.Seed, 0)
	for range m.h.Rounds {
		if err := m.round(ctx, false); err != nil {
			return err
		}
	}
	return m.settle(ctx)
}

// killed ends the connector's connections at the server. It may reconnect or fail; the next attempt goes on.
func killed(ctx context.Context, h Harness) error {
	m, err := newMesh(ctx, h, spec.SnapshotInitial, keyed()...)
	if err != nil {
		return err
	}
	m.load.start(ctx, h.Seed, m.h.Rows)
	for range m.h.Rounds {
		killed := make(chan error, 1)
		go func() { killed <- h.Database.Kill(ctx) }()
		if err := errors.Join(m.round(ctx, true), <-killed); err != nil {
			return err
		}
	}
	return m.settle(ctx)
}

// drained asks for the end while the snapshot is read and writers write. Everything from before is given.
func drained(ctx context.Context, h Harness) error {
	m, err := newMesh(ctx, h, spec.SnapshotInitial, keyed()...)
	if err != nil {
		return err
	}
	m.load.start(ctx, h.Seed, m.h.Rows)
	a, err := m.start(ctx, 3)
	if err != nil {
		return err
	}
	if err := m.commit(ctx, a); err != nil {
		return err
	}
	if err := m.load.stop(); err != nil {
		return err
	}
	a.drain()
	return m.toTheEnd(ctx, a)
}

// only ends by itself, with the tables as of one moment.
func only(ctx context.Context, h Harness) error {
	m, err := newMesh(ctx, h, spec.SnapshotOnly, keyed()...)
	if err != nil {
		return err
	}
	m.load.start(ctx, h.Seed, m.h.Rows)
	if err := m.round(ctx, false); err != nil {
		return err
	}
	if err := m.load.stop(); err != nil {
		return err
	}
	a, err := m.start(ctx, 3)
	if err != nil {
		return err
	}
	return m.toTheEnd(ctx, a)
}

// toTheEnd takes epochs until every half is drained, and one more.
func (m *mesh) toTheEnd(ctx context.Context, a *attempt) error {
	tick := time.NewTicker(epochPause)
	defer tick.Stop()
	for ; ; <-tick.C {
		ended := int(a.drained.Load()) == len(a.readers)+1
		if err := m.commit(ctx, a); err != nil {
			return err
		}
		if ended {
			return m.finish(ctx, a)
		}
	}
}
