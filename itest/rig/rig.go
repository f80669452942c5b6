package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// Job is the name of the flow's job, Copy and Log those of its sinks and, after "shop_", of their schemas.
const (
	Job  = "shop"
	Copy = "copy"
	Log  = "log"
)

// jobSpec has short pauses, so that a test sees many epochs and waits for its faults and not for restarts.
const jobSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: postgres
    url: ${SHOP_URL}
    tables: ["shop.*"]
    snapshot: {mode: never}
sinks:
  copy:
    from: [db]
    type: postgres
    url: ${TARGET_URL}
    schema: shop_copy
    mode: upsert
  log:
    from: [db]
    type: postgres
    url: ${TARGET_URL}
    schema: shop_log
    mode: changelog
    writers: 2
`

// Config says how big a flow is.
type Config struct {
	// Roles are the processes besides NATS.
	Roles []mesh.Role
	// Rate is the shop's load in transactions per second.
	Rate float64
	// Seed decides the shop's transactions.
	Seed uint64
	// Cluster and Relayed are those of [mesh.Config].
	Cluster int
	Relayed bool
}

// Rig is a running flow.
type Rig struct {
	Source, Target *harness.Postgres
	Mesh           *mesh.Mesh
	Records        *mesh.Records

	oracle  *audit.Oracle
	readers []*audit.Reader
	applied atomic.Int64
	close   func() error
}

// Start builds the flow, opens the shop and waits until its readers see rows at the target.
func Start(tb testing.TB, cfg Config) *Rig {
	tb.Helper()
	ctx := tb.Context()
	r := &Rig{
		Source: harness.StartPostgres(tb, harness.PostgresConfig{}),
		Target: harness.StartPostgres(tb, harness.PostgresConfig{}),
	}
	if err := r.Source.Exec(ctx, "postgres", shop.Schema); err != nil {
		tb.Fatal(err)
	}
	var err error
	if r.oracle, err = audit.OpenOracle(ctx, r.Source.URL("postgres"), "shop"); err != nil {
		tb.Fatal(err)
	}
	r.Mesh = mesh.Start(tb, mesh.Config{
		Roles: cfg.Roles, Cluster: cfg.Cluster, Relayed: cfg.Relayed,
		Env: []string{"SHOP_URL=" + r.Source.URL("postgres"), "TARGET_URL=" + r.Target.URL("postgres")},
	})
	r.Mesh.Submit(tb, Job, jobSpec)
	r.Records = r.Mesh.Records(tb)
	for _, sql := range []string{
		audit.CopyLook("shop_copy", Job, Copy, shop.Torn("shop_copy")), audit.LogLook("shop_log", Job, Log, shop.Tables()),
	} {
		r.readers = append(r.readers, audit.StartReader(ctx, r.Target.URL("postgres"), sql, r.durable))
	}
	r.open(tb, cfg)
	for _, reader := range r.readers {
		harness.Await(tb, 60*time.Second, "the first rows at the target", func(context.Context) error {
			if reader.Looks() == 0 {
				return errors.New("a reader has seen nothing yet")
			}
			return nil
		})
	}
	return r
}

// open starts the load. It is ended by close, which may be called twice.
func (r *Rig) open(tb testing.TB, cfg Config) {
	tb.Helper()
	conn, err := r.Source.Connect(tb.Context(), "postgres")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	var failure error
	var done sync.WaitGroup
	done.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		_, failure = shop.Run(ctx, conn, shop.New(cfg.Seed), shop.Load{Rate: cfg.Rate, Applied: &r.applied})
	})
	r.close = func() error {
		cancel()
		done.Wait()
		return failure
	}
	tb.Cleanup(func() { _ = r.close() }) // the verdict has asked for its error
}

// durable is the newest durable epoch; false while the bus does not answer. On a cluster nobody knows: a server that was
// frozen answers with what it knew then.
func (r *Rig) durable(ctx context.Context) (epoch uint64, ok bool) {
	if r.Mesh.Cluster != nil {
		return 0, false
	}
	h, err := r.Records.Now(ctx, Job)
	if err != nil || h.Durable == nil {
		return 0, false
	}
	return uint64(h.Durable.Epoch), true
}

// Applied is the number of transactions that the shop has made so far.
func (r *Rig) Applied() int64 { return r.applied.Load() }

// Recovered waits for the first durable epoch that was triggered after a moment, by an attempt with a higher fence than
// above, and returns the head that names it and how long after the moment it was complete.
func (r *Rig) Recovered(tb testing.TB, since time.Time, above fence.Token) (job.Head, time.Duration) {
	tb.Helper()
	var found job.Head
	harness.Await(tb, 60*time.Second, "an epoch that is triggered now to be durable", func(ctx context.Context) error {
		h, err := r.Records.Now(ctx, Job)
		switch {
		case err != nil:
			return err
		case h.Phase.AtRest():
			tb.Fatalf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
		case h.Durable == nil || h.Durable.Fence <= above:
			return fmt.Errorf("phase %s of attempt %s: %s %s", h.Phase, h.Fence, h.Reason.Code, h.Reason.Text)
		}
		m, err := r.Records.Manifest(ctx, Job, h.Durable.Ref)
		if err != nil {
			return err
		}
		if !m.Triggered.After(since) {
			return fmt.Errorf("epoch %s is of before", m.Epoch)
		}
		found = h
		return nil
	})
	return found, found.Durable.At.Sub(since)
}

// Seed is a test's seed: ITEST_SEED, else a new one. It is printed, so that a run can be repeated.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv("ITEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("ITEST_SEED: %v", err)
		}
	}
	tb.Logf("repeat with ITEST_SEED=%d", seed)
	return seed
}
