package natssink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
)

// kills is how often the sink is killed; ITEST_KILLS is for longer runs.
const kills = 5

const killSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 200ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: ["shop.*"], snapshot: {mode: never}}
sinks:
  events: {from: [db], type: nats, url: %q, stream: CHANGES, prefix: cdc, create: true}
`

const killTables = `CREATE SCHEMA shop;
	CREATE TABLE shop.goods (id int PRIMARY KEY, name text, n bigint, price numeric(12,2));
	CREATE TABLE shop.sales (id int PRIMARY KEY, item int, note text);`

// TestKilledSinks kills the sink again and again while the source is changed.
func TestKilledSinks(t *testing.T) {
	total := harness.Number(t, "ITEST_KILLS", kills)
	got := published(t, 0, func(t *testing.T, m *mesh.Mesh, pause func()) {
		t.Helper()
		records, sink := m.Records(t), m.Of(mesh.Sink)[0]
		for i := range total {
			head, err := records.Now(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			pause()
			sink.Kill()
			if err := sink.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			committed(t, records, head.Fence)
			t.Logf("kill %d: committed again", i+1)
		}
	})
	if n := attempts(got); n < total/2 {
		t.Errorf("%d kills, and events of %d attempts", total, n)
	}
}

// TestKilledServers does the same to a stream with three copies: the servers that hold them are killed in turn, and with every
// second one the sink.
func TestKilledServers(t *testing.T) {
	published(t, 3, func(t *testing.T, m *mesh.Mesh, pause func()) {
		t.Helper()
		records, sink := m.Records(t), m.Of(mesh.Sink)[0]
		for i, server := range m.Cluster.Servers {
			pause()
			head, err := records.Now(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			server.Kill()
			if i%2 == 0 {
				sink.Kill()
				if err := sink.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			beyond(t, records, head.Committed)
			t.Logf("%s killed: committed again after %s", server.Name, time.Since(began).Round(time.Millisecond))
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			harness.Await(t, patience, server.Name+" to be ready", harness.HTTPReady(server.Monitor+"/healthz"))
		}
	})
}

// published runs a job from a source that is changed all along, does harm, and returns what a reader of the stream has. That
// reader looks from beginning to end and must see a stream that only grows; in the end it holds each change of the log once, with
// its values, in the order of its key. cluster is the number of NATS servers, zero for one alone.
func published(t *testing.T, cluster int, harm func(t *testing.T, m *mesh.Mesh, pause func())) []audit.Change {
	t.Helper()
	seed := rig.Seed(t)
	source := harness.StartPostgres(t, harness.PostgresConfig{})
	if err := source.Exec(t.Context(), "postgres", killTables); err != nil {
		t.Fatal(err)
	}
	oracle, err := audit.OpenOracle(t.Context(), source.URL("postgres"), "shop")
	if err != nil {
		t.Fatal(err)
	}
	m := mesh.Start(t, mesh.Config{
		Cluster: cluster, Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}, Env: []string{"SOURCE_URL=" + source.URL("postgres")},
	})
	m.Submit(t, "shop", fmt.Sprintf(killSpec, m.URL))
	m.Must(t, "status", "shop", "--wait-for", "running", "--timeout", "60s")

	stop := load(t, source, seed)
	look := watch(t, open(t, m.URL, "CHANGES", "cdc"), cluster > 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	harm(t, m, func() {
		if err := harness.Pause(t.Context(), time.Duration(500+rng.IntN(700))*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	})
	stop()
	m.CaughtUp(t, "shop")
	got := look.stop()
	want, err := oracle.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 500 {
		t.Errorf("the source made only %d changes", len(want))
	}
	if err := audit.Validate(got, want); err != nil {
		t.Error(err)
	}
	if look.looks < 5 {
		t.Errorf("the reader has looked %d times", look.looks)
	}
	t.Logf("%d changes by %d attempts, %d looks", len(got), attempts(got), look.looks)
	m.Verify(t, "shop")
	return got
}

// patience is no promise: how long a test waits before it gives up.
const patience = 90 * time.Second

// beyond waits until the second epoch behind one is committed, whose rows were sent after it. On a cluster an attempt may survive.
func beyond(t *testing.T, records *mesh.Records, last epoch.ID) {
	t.Helper()
	harness.Await(t, patience, "another epoch to be committed", func(ctx context.Context) error {
		h, err := records.Now(ctx, "shop")
		if err == nil && h.Phase.AtRest() {
			t.Fatalf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
		}
		if err == nil && h.Committed <= last+1 {
			err = fmt.Errorf("epoch %s of attempt %s is committed", h.Committed, h.Fence)
		}
		return err
	})
}

// committed waits for an epoch that an attempt behind above has committed.
func committed(t *testing.T, records *mesh.Records, above fence.Token) {
	t.Helper()
	harness.Await(t, patience, "the next attempt to commit", func(ctx context.Context) error {
		h, err := records.Now(ctx, "shop")
		switch {
		case err != nil:
			return err
		case h.Phase.AtRest():
			t.Fatalf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
		case h.Fence <= above || h.Durable == nil || h.Durable.Fence <= above || h.Committed < h.Durable.Epoch:
			return fmt.Errorf("phase %s of attempt %s", h.Phase, h.Fence)
		}
		return nil
	})
}

// load changes the source until it is stopped.
func load(t *testing.T, source *harness.Postgres, seed uint64) (stop func()) {
	t.Helper()
	conn, err := source.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		rng := rand.New(rand.NewPCG(seed, 2))
		for n := 1; ctx.Err() == nil; n++ {
			id := 1 + rng.IntN(60)
			sql := fmt.Sprintf(`BEGIN;
				INSERT INTO shop.goods VALUES (%[1]d, 'item %[2]d', %[2]d, %[2]d.25) ON CONFLICT (id) DO UPDATE SET n = %[2]d, name = NULL;
				INSERT INTO shop.sales SELECT %[2]d * 10 + i, %[1]d, repeat('note ', 50) FROM generate_series(1, 4) i;`, id, n)
			switch rng.IntN(5) {
			case 0:
				sql += fmt.Sprintf("DELETE FROM shop.goods WHERE id = %d;", 1+rng.IntN(60))
			case 1:
				sql += fmt.Sprintf("UPDATE shop.goods SET id = id + 1000 WHERE id = %d AND NOT EXISTS (SELECT FROM shop.goods WHERE id = %[1]d + 1000);", 1+rng.IntN(60))
			}
			if _, err := conn.Exec(ctx, sql+"COMMIT;"); err != nil && ctx.Err() == nil {
				t.Errorf("load: %v", err)
				return
			}
			if harness.Pause(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return func() { cancel(); done.Wait() }
}

// reader looks at the stream from its beginning, over and over.
type reader struct {
	t     *testing.T
	o     *bus.Outlet
	end   context.CancelFunc
	done  sync.WaitGroup
	looks int
	away  bool // a server may be away, or have the end of the stream later than another
	all   []bus.Entry
}

func watch(t *testing.T, o *bus.Outlet, away bool) *reader {
	ctx, end := context.WithCancel(t.Context())
	r := &reader{t: t, o: o, end: end, away: away}
	r.done.Go(func() {
		for harness.Pause(ctx, 200*time.Millisecond) == nil {
			if err := r.look(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	t.Cleanup(func() { end(); r.done.Wait() })
	return r
}

func (r *reader) look(ctx context.Context) error {
	now, err := r.o.Read(ctx, "cdc.*.*.*", time.Time{})
	if r.away && (errors.Is(err, fault.Transient) || errors.Is(err, bus.ErrNoResponders)) {
		return nil
	}
	if err != nil {
		return err
	}
	r.looks++
	if len(now) < len(r.all) && !r.away {
		return errors.New("events that were there are gone")
	}
	for i, e := range r.all[:min(len(r.all), len(now))] {
		if now[i].Revision != e.Revision || !bytes.Equal(now[i].Value, e.Value) {
			return fmt.Errorf("event %d has changed", e.Revision)
		}
	}
	if len(now) >= len(r.all) {
		r.all = now
	}
	return nil
}

// stop looks a last time and returns what the reader has seen, as the log has it.
func (r *reader) stop() []audit.Change {
	r.end()
	r.done.Wait()
	r.away = false
	if err := r.look(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	changes := make([]audit.Change, len(r.all))
	for i, e := range r.all {
		changes[i] = change(r.t, e)
	}
	return changes
}

// change reads an event as any consumer does: from its body and headers.
func change(t *testing.T, e bus.Entry) audit.Change {
	t.Helper()
	var v struct {
		Op            string
		Before, After map[string]json.RawMessage
		Source        struct {
			Schema, Table string
			LSN           uint64
			Ord           uint32
		}
	}
	if err := json.Unmarshal(e.Value, &v); err != nil {
		t.Fatalf("event %s: %v", e.Value, err)
	}
	at, err := epoch.ParseID(e.Header.Get("Weir-Epoch"))
	if err != nil {
		t.Fatal(err)
	}
	by, err := fence.ParseToken(e.Header.Get("Weir-Fence"))
	if err != nil {
		t.Fatal(err)
	}
	ops := map[string]rows.Op{"c": rows.OpInsert, "u": rows.OpUpdateAfter, "d": rows.OpDelete}
	c := audit.Change{
		Change: verdict.Change{
			Table: v.Source.Schema + "." + v.Source.Table, Op: ops[v.Op], Txn: v.Source.LSN, Ord: v.Source.Ord, Epoch: at, Fence: by,
		},
		Cells: make(map[string]*string),
	}
	cells := v.After
	if cells == nil {
		cells = v.Before
	}
	for name, raw := range cells {
		c.Cells[name] = text(t, raw)
	}
	key, err := json.Marshal([]*string{c.Cells["id"]})
	if err != nil {
		t.Fatal(err)
	}
	c.Key = string(key)
	return c
}

// text is a value as the log has it.
func text(t *testing.T, raw json.RawMessage) *string {
	t.Helper()
	s := string(raw)
	switch {
	case s == "null":
		return nil
	case strings.HasPrefix(s, `"`):
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
	}
	return &s
}

func attempts(changes []audit.Change) int {
	var fences []fence.Token
	for _, c := range changes {
		if !slices.Contains(fences, c.Fence) {
			fences = append(fences, c.Fence)
		}
	}
	return len(fences)
}
