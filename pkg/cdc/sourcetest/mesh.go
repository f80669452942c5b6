package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// chunkRows makes many chunks of few rows.
const chunkRows = 16

// epochPause lies between epochs that only wait for rows.
const epochPause = 5 * time.Millisecond

// mesh is a life of a job around one source.
type mesh struct {
	h      Harness
	rnd    *rand.Rand
	load   *workload
	source spec.Source

	fence   fence.Token
	epoch   epoch.ID
	durable *cut
	sink    *sink // of the present attempt
	objects objects
}

func newMesh(ctx context.Context, h Harness, mode spec.SnapshotMode, kinds ...KeyKind) (*mesh, error) {
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	if h.Rows == 0 {
		h.Rows = 500
	}
	if h.Rounds == 0 {
		h.Rounds = 8
	}
	if h.Quiet == 0 {
		h.Quiet = 10 * time.Second
	}
	m := &mesh{h: h, rnd: rand.New(rand.NewPCG(h.Seed, 1)), load: newWorkload(h.Database)}
	for i, k := range kinds {
		if err := m.load.create(ctx, fmt.Sprintf("t%d_%s", i, k), k, max(h.Rows, 0)); err != nil {
			return nil, err
		}
	}
	m.source = h.Source(append([]rows.TableID(nil), m.load.tables...), mode, chunkRows)
	return m, nil
}

// commit takes one epoch to its end.
func (m *mesh) commit(ctx context.Context, a *attempt) error {
	c := a.barrier()
	if err := a.wait(ctx, c); err != nil {
		return err
	}
	m.keep(a, c)
	a.confirm(c)
	m.load.turn(ctx)
	return nil
}

// keep makes an epoch durable.
func (m *mesh) keep(a *attempt, c *cut) {
	m.durable = c
	a.durable(c)
	m.objects.collect(c, m.fence)
}

// round runs one attempt for a few epochs and crashes it somewhere in the course of one. broken says that the attempt may
// end by itself.
func (m *mesh) round(ctx context.Context, broken bool) error {
	a, err := m.start(ctx, 1+m.rnd.IntN(4))
	if err != nil {
		if broken {
			return nil
		}
		return err
	}
	for range m.rnd.IntN(12) {
		if err := m.commit(ctx, a); err != nil {
			if broken && ctx.Err() == nil {
				return nil
			}
			return err
		}
	}
	where := m.rnd.IntN(4)
	if where > 0 {
		c := a.barrier()
		if where > 1 {
			if err := a.wait(ctx, c); err != nil && (!broken || ctx.Err() != nil) {
				return err
			} else if err == nil && where > 2 {
				m.keep(a, c)
			}
		}
	}
	if err := a.crash(); err != nil && !broken {
		return err
	}
	return nil
}

// settle ends the writers and lets an attempt go on until the sink has what the database has.
func (m *mesh) settle(ctx context.Context) error {
	a, err := m.start(ctx, 1+m.rnd.IntN(4))
	if err != nil {
		return err
	}
	for range 1 + m.rnd.IntN(20) {
		if err := m.commit(ctx, a); err != nil {
			return err
		}
	}
	if err := m.load.stop(); err != nil {
		return err
	}
	if err := m.equalize(ctx, a); err != nil {
		return err
	}
	// Nothing may come behind the end.
	for range 5 {
		if err := m.commit(ctx, a); err != nil {
			return err
		}
	}
	return m.finish(ctx, a)
}

// equalize takes epochs until the sink has what the database has.
func (m *mesh) equalize(ctx context.Context, a *attempt) error {
	tick := time.NewTicker(epochPause)
	defer tick.Stop()
	came, since := a.rows.Load(), time.Now()
	for {
		if err := m.commit(ctx, a); err != nil {
			return err
		}
		d := m.differs(ctx)
		if d == "" {
			return nil
		}
		if n := a.rows.Load(); n != came {
			came, since = n, time.Now()
		}
		if time.Since(since) > m.h.Quiet {
			return errors.Join(fmt.Errorf("at rest the sink differs: %s", d), a.crash())
		}
		<-tick.C
	}
}

// finish ends the attempt and compares.
func (m *mesh) finish(ctx context.Context, a *attempt) error {
	if err := a.crash(); err != nil {
		return err
	}
	if d := m.differs(ctx); d != "" {
		return fmt.Errorf("the sink differs: %s", d)
	}
	if n := m.objects.left(); n > 0 {
		return fmt.Errorf("%d objects of the store are named for ever", n)
	}
	return m.durable.sink.exact(m.load.written)
}

// differs compares what is durable at the sink with the database; empty when they are equal.
func (m *mesh) differs(ctx context.Context) string {
	for _, t := range m.load.tables {
		want, err := m.h.Database.Read(ctx, t)
		if err != nil {
			return err.Error()
		}
		if m.durable == nil {
			return "nothing is durable"
		}
		if d := m.durable.sink.differs(t, want); d != "" {
			return d
		}
	}
	return ""
}
