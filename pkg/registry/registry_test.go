package registry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

const ttl = 3 * time.Second

// open makes a server with the base of the mesh.
func open(t *testing.T) (*Registry, *bus.Conn, func()) {
	t.Helper()
	srv := meshtest.StartServer(t, meshtest.ServerOptions{})
	conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), conn, ttl); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("open before the base is made: %v", err)
	}
	if err := conn.EnsureBase(t.Context(), bus.BaseConfig{LeaseTTL: ttl, MemoryState: true}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), conn, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return r, conn, func() {
		conn.Close()
		srv.Shutdown()
	}
}

func TestHeadsAreWrittenByCompareAndSwap(t *testing.T) {
	r, _, done := open(t)
	defer done()
	ctx := t.Context()
	if v, err := r.Head(ctx, "shop"); err != nil || v.Head != nil || v.Revision != 0 {
		t.Fatalf("a missing head: %+v, %v", v, err)
	}
	h := job.Head{Version: 1, Job: "shop", Phase: job.Created, Fence: 1, NextEpoch: 1, Updated: time.Unix(1, 0).UTC()}
	rev, err := r.WriteHead(ctx, &h, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteHead(ctx, &h, 0); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("created twice: %v", err)
	}
	h.Fence = 2
	if _, err := r.WriteHead(ctx, &h, rev+7); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("written over a revision that is not there: %v", err)
	}
	if rev, err = r.WriteHead(ctx, &h, rev); err != nil {
		t.Fatal(err)
	}
	other := job.Head{Version: 1, Job: "job-2", Phase: job.Running}
	if _, err := r.WriteHead(ctx, &other, 0); err != nil {
		t.Fatal(err)
	}
	all, err := r.Heads(ctx)
	if err != nil || len(all) != 2 || all["shop"].Revision != rev || all["shop"].Head.Fence != 2 {
		t.Errorf("Heads: %+v, %v", all, err)
	}
	one, err := r.Heads(ctx, "job-2", "nobody")
	if err != nil || len(one) != 1 || one["job-2"].Head.Phase != job.Running {
		t.Errorf("Heads of two: %+v, %v", one, err)
	}
}

func TestNewerAndForeignRecordsAreRefused(t *testing.T) {
	r, conn, done := open(t)
	defer done()
	b, err := conn.Bucket(t.Context(), bus.RegistryBucket)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]fault.Code{`{"version":2,"job":"shop"}`: fault.RegVersionTooNew, `no json`: fault.RegCorrupt} {
		if _, err := b.Put(t.Context(), bus.HeadKey("shop"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Head(t.Context(), "shop"); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestAskLosesNoRequest(t *testing.T) {
	r, _, done := open(t)
	defer done()
	var work sync.WaitGroup
	const people = 8
	for range people {
		work.Go(func() {
			if _, err := r.Ask(t.Context(), "shop", func(i job.Intent) (job.Intent, error) {
				return i.Epoch("r", time.Now()), nil
			}); err != nil {
				t.Errorf("ask: %v", err)
			}
		})
	}
	work.Wait()
	i, _, err := r.Intent(t.Context(), "shop")
	if err != nil || i.EpochSeq != people {
		t.Errorf("after %d requests: %+v, %v", people, i, err)
	}
	refused := errors.New("no such job")
	if _, err := r.Ask(t.Context(), "shop", func(job.Intent) (job.Intent, error) { return job.Intent{}, refused }); !errors.Is(err, refused) {
		t.Errorf("a refusal: %v", err)
	}
}

func TestSpecsKeepTheirReferences(t *testing.T) {
	r, _, done := open(t)
	defer done()
	text := "apiVersion: weir/v1\njob: shop\nsources: {db: {type: generator}}\n" +
		"sinks: {out: {from: [db], type: postgres, url: \"${URL}\", schema: s}}\n"
	j, err := spec.Parse([]byte(text), "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := r.PutSpec(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.PutSpec(t.Context(), j); err != nil || again != digest {
		t.Errorf("stored again: %s, %v", again, err)
	}
	back, err := r.Spec(t.Context(), "shop", digest)
	if err != nil || back.Digest() != digest || !strings.Contains(string(back.Canonical()), "${URL}") {
		t.Errorf("read back: %v, %v", back, err)
	}
	if _, err := r.Spec(t.Context(), "shop", "other"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a spec that is not there: %v", err)
	}
}

func TestPlansAreWrittenOnceAndChecked(t *testing.T) {
	r, _, done := open(t)
	defer done()
	d := &plan.Deployment{Life: "l", Fence: 3, Spec: json.RawMessage(`{}`)}
	d.Job = "shop"
	ref, err := r.PutPlan(t.Context(), d, 5)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.PutPlan(t.Context(), d, 5); err != nil || again != ref {
		t.Errorf("the same plan again: %+v, %v", again, err)
	}
	other := *d
	other.Life = "m"
	if _, err := r.PutPlan(t.Context(), &other, 5); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("another plan under the same key: %v", err)
	}
	if back, err := r.Plan(t.Context(), ref); err != nil || back.Life != "l" || back.Fence != 3 {
		t.Errorf("read back: %+v, %v", back, err)
	}
	ref.Digest = plan.Digest(nil)
	if _, err := r.Plan(t.Context(), ref); fault.CodeOf(err) != fault.RegCorrupt {
		t.Errorf("another digest: %v", err)
	}
	if err := r.DropPlans(t.Context(), "shop", 3); err != nil {
		t.Fatal(err)
	}
	ref.Digest = plan.Digest(d.Bytes())
	if _, err := r.Plan(t.Context(), ref); err != nil {
		t.Errorf("the newest plan was dropped: %v", err)
	}
	if err := r.DropPlans(t.Context(), "shop", 4); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Plan(t.Context(), ref); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("an old plan stays: %v", err)
	}
}

// put stores a manifest that follows prev; size pads it.
func put(t *testing.T, r *Registry, e epoch.ID, term uint64, prev epoch.Ref, size int) (epoch.Ref, job.Durable) {
	t.Helper()
	m := &epoch.Manifest{Version: 1, Job: "shop", Life: "l", Epoch: e, Kind: epoch.Periodic, Fence: 2, Term: term, Prev: prev, Plan: strings.Repeat("x", size)}
	b, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	ref := epoch.Ref{Epoch: e, Digest: epoch.Digest(b)}
	d, err := r.PutManifest(t.Context(), m, b, ref)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.PutManifest(t.Context(), m, b, ref); err != nil || again.Key != d.Key {
		t.Errorf("the same manifest again: %+v, %v", again, err)
	}
	return ref, d
}

// A manifest is found by its reference, whoever wrote it and however big it is; its key is there in any case.
func TestManifestsAreFoundByReference(t *testing.T) {
	r, _, done := open(t)
	defer done()
	ctx := t.Context()
	first, _ := put(t, r, 4, 1, epoch.Ref{}, 0)
	loser, _ := put(t, r, 6, 1, epoch.Ref{}, 10)
	big, d := put(t, r, 6, 2, first, maxInline+1)
	if d.Object == nil {
		t.Error("a big manifest is not a state object")
	}
	last, _ := put(t, r, 9, 2, big, 0)
	for _, ref := range []epoch.Ref{first, loser, big, last} {
		m, err := r.Manifest(ctx, "shop", ref)
		if err != nil || m.Epoch != ref.Epoch {
			t.Errorf("manifest %d: %v", ref.Epoch, err)
		}
	}
	if _, err := r.Manifest(ctx, "shop", epoch.Ref{Epoch: 4, Digest: "x"}); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("another digest: %v", err)
	}
	links, err := r.Chain(ctx, "shop", last, 6)
	if err != nil || len(links) != 2 || links[0].Ref != big || links[1].Ref != last {
		t.Errorf("chain to 6: %+v, %v", links, err)
	}
	if links, err = r.Chain(ctx, "shop", last, 0); err != nil || len(links) != 3 {
		t.Errorf("chain to the first: %+v, %v", links, err)
	}
	if ids, err := r.Epochs(ctx, "shop"); err != nil || len(ids) != 3 {
		t.Errorf("epochs %v, %v", ids, err)
	}
	if err := r.DropManifest(ctx, "shop", 4); err != nil {
		t.Fatal(err)
	}
	if links, err = r.History(ctx, "shop", last); err != nil || len(links) != 2 {
		t.Errorf("history after the collection of 4: %+v, %v", links, err)
	}
	if _, err = r.Chain(ctx, "shop", last, 0); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a chain with a hole: %v", err)
	}
}

func TestTermsOnlyGrow(t *testing.T) {
	r, _, done := open(t)
	defer done()
	var mu sync.Mutex
	seen := make(map[uint64]bool)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			term, err := r.RaiseTerm(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[term] {
				t.Errorf("term %d again, or %v", term, err)
			}
			seen[term] = true
		})
	}
	work.Wait()
	if term, err := r.RaiseTerm(t.Context()); err != nil || term != 9 {
		t.Errorf("the ninth term is %d, %v", term, err)
	}
}

func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, done := open(t)
		defer done()
		ctx := t.Context()
		a, err := r.Acquire(ctx, "leader", []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Acquire(ctx, "leader", []byte("b")); !errors.Is(err, bus.ErrConflict) {
			t.Fatalf("two owners: %v", err)
		}
		// Renewed, it outlives its time; its deadline moves with the sending.
		for range 6 {
			wait(ctx, a.Interval())
			if err := a.Renew(ctx, nil); err != nil {
				t.Fatal(err)
			}
			if got := time.Until(a.Until()); got != ttl {
				t.Fatalf("ends in %s, want %s", got, ttl)
			}
		}
		// Left alone, it expires; its owner finds out, and somebody else may have it.
		wait(ctx, ttl+time.Second)
		b, err := r.Acquire(ctx, "leader", []byte("b"))
		if err != nil {
			t.Fatalf("after its end: %v", err)
		}
		if err := a.Renew(ctx, nil); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("renewed after its end: %v", err)
		}
		// Given back, it is free at once.
		if err := b.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Acquire(ctx, "leader", []byte("c")); err != nil {
			t.Errorf("after its release: %v", err)
		}
		if err := b.Renew(ctx, nil); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("renewed after its release: %v", err)
		}
	})
}

func TestNodesAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, done := open(t)
		defer done()
		ctx := t.Context()
		n := job.NodeLease{Node: "host.1-x", Incarnation: "i1", Capabilities: []string{"sink:files"}, Slots: 3}
		l, err := r.AcquireNode(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		n.Leaving = true
		b, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Renew(ctx, b); err != nil {
			t.Fatal(err)
		}
		nodes, err := r.Nodes(ctx)
		if err != nil || len(nodes) != 1 || !nodes[0].Leaving || nodes[0].Node != n.Node {
			t.Errorf("nodes %+v, %v", nodes, err)
		}
		w := r.WatchNodes(ctx)
		defer w.Close()
		for u := range w.Updates() {
			if u.Kind == bus.Expired {
				return
			}
		}
		t.Error("the watch did not tell that the lease expired")
	})
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func TestEraseKeepsHeadAndIntent(t *testing.T) {
	r, _, done := open(t)
	defer done()
	ctx := t.Context()
	h := job.Head{Version: 1, Job: "shop", Phase: job.Deleted}
	if _, err := r.WriteHead(ctx, &h, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ask(ctx, "shop", func(i job.Intent) (job.Intent, error) { return i.Removed("r", time.Now()), nil }); err != nil {
		t.Fatal(err)
	}
	put(t, r, 4, 1, epoch.Ref{}, 0)
	neighbour := &epoch.Manifest{Version: 1, Job: "shop2", Life: "l", Epoch: 4, Term: 1}
	b, err := neighbour.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.PutManifest(ctx, neighbour, b, epoch.Ref{Epoch: 4, Digest: epoch.Digest(b)}); err != nil {
		t.Fatal(err)
	}
	if err := r.EraseJob(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	ids, err := r.Epochs(ctx, "shop")
	v, _ := r.Head(ctx, "shop")
	i, _, _ := r.Intent(ctx, "shop")
	if err != nil || len(ids) != 0 || v.Head == nil || i.Wish != job.WishDeleted {
		t.Errorf("after: epochs %v, %v; head %+v; intent %+v", ids, err, v.Head, i)
	}
	if ids, err := r.Epochs(ctx, "shop2"); err != nil || len(ids) != 1 {
		t.Errorf("the neighbour has epochs %v, %v", ids, err)
	}
}

// A process trusts its lease for as long as the bucket keeps it, or shorter when it is told so, never longer.
func TestLeasesLastAsLongAsTheBucketSays(t *testing.T) {
	_, conn, done := open(t)
	defer done()
	for given, want := range map[time.Duration]time.Duration{0: ttl, time.Second: time.Second, 12 * time.Second: ttl} {
		r, err := Open(t.Context(), conn, given)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.TTL(); got != want {
			t.Errorf("told %s: %s, want %s", given, got, want)
		}
	}
}

// On one server nobody is late: what is not there is said at once.
func TestOneServerIsNeverLate(t *testing.T) {
	_, conn, done := open(t)
	defer done()
	tries := 0
	err := conn.Stored(t.Context(), func() error {
		tries++
		return bus.ErrNotFound
	})
	if !errors.Is(err, bus.ErrNotFound) || tries != 1 {
		t.Errorf("%d tries: %v", tries, err)
	}
}
