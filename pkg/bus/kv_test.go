package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/meshtest"
)

func bucket(t testing.TB, c *bus.Conn, name string) *bus.Bucket {
	t.Helper()
	b, err := c.Bucket(t.Context(), name)
	if err != nil {
		t.Fatalf("open bucket: %v", err)
	}
	return b
}

func TestCompareAndSwap(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	b := bucket(t, c, bus.RegistryBucket)
	ctx := t.Context()
	key := bus.HeadKey("shop")
	if _, err := b.Get(ctx, key); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("get before create: %v, want ErrNotFound", err)
	}
	r1, err := b.Create(ctx, key, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(ctx, key, []byte("x")); !errors.Is(err, bus.ErrConflict) || !errors.Is(err, fault.Transient) {
		t.Fatalf("second create: %v, want ErrConflict", err)
	}
	r2, err := b.Update(ctx, key, []byte("2"), r1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Update(ctx, key, []byte("x"), r1); !errors.Is(err, bus.ErrConflict) {
		t.Fatalf("stale update: %v, want ErrConflict", err)
	}
	e, err := b.Get(ctx, key)
	if err != nil || string(e.Value) != "2" || e.Revision != r2 || e.Key != key || e.Time.IsZero() {
		t.Fatalf("get: %+v, %v", e, err)
	}
	if err := b.Delete(ctx, key, r1); !errors.Is(err, bus.ErrConflict) {
		t.Fatalf("stale delete: %v, want ErrConflict", err)
	}
	if err := b.Delete(ctx, key, r2); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ctx, key); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("get after delete: %v, want ErrNotFound", err)
	}
	if _, err := b.Create(ctx, key, []byte("3")); err != nil {
		t.Fatalf("create over a deletion marker: %v", err)
	}
	if _, err := b.Get(ctx, "no.*"); err == nil {
		t.Fatal("get with a wildcard succeeded")
	}
	if _, err := c.Bucket(ctx, "none"); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("missing bucket: %v, want ErrNotFound", err)
	}
}

func TestGetManyAndKeys(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	b := bucket(t, c, bus.RegistryBucket)
	ctx := t.Context()
	for i := range 3 {
		for range 2 { // the last revision counts
			if _, err := b.Put(ctx, bus.HeadKey(fmt.Sprint("job", i)), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Put(ctx, bus.SpecKey(fmt.Sprint("job", i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Delete(ctx, bus.HeadKey("job1"), 0); err != nil {
		t.Fatal(err)
	}
	want := []string{bus.HeadKey("job0"), bus.HeadKey("job2")}
	es, err := b.GetMany(ctx, bus.HeadPattern)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range es {
		got = append(got, e.Key)
	}
	if !slices.Equal(got, want) || string(es[1].Value) != "2" {
		t.Fatalf("get many: %v, want %v", got, want)
	}
	if got, err := b.Keys(ctx, bus.HeadPattern); err != nil || !slices.Equal(got, want) {
		t.Fatalf("keys: %v, %v, want %v", got, err, want)
	}
	if es, err := b.GetMany(ctx, "none.>"); err != nil || len(es) != 0 {
		t.Fatalf("get nothing: %v, %v", es, err)
	}
	if keys, err := b.Keys(ctx, "none.>"); err != nil || len(keys) != 0 {
		t.Fatalf("list nothing: %v, %v", keys, err)
	}
	if err := b.PurgeSubject(ctx, bus.HeadKey("job0")); err != nil {
		t.Fatal(err)
	}
	if es, err := b.GetMany(ctx, bus.HeadKey("job0"), bus.HeadKey("job2")); err != nil || len(es) != 1 {
		t.Fatalf("get after purge: %v, %v", es, err)
	}
}

// The server refuses a multi-last read of more than 1024 subjects.
func TestGetManyBeyondOneSnapshot(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	b := bucket(t, c, bus.ProgressBucket)
	const n = 1100
	for i := range n {
		if _, err := b.Put(t.Context(), fmt.Sprintf("job.%04d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	es, err := b.GetMany(t.Context(), "job.*")
	if err != nil || len(es) != n || es[n-1].Key != "job.1099" {
		t.Fatalf("get many: %d entries, %v", len(es), err)
	}
}

// next reads one update of a watch.
func next(t testing.TB, w *bus.Watch) bus.Update {
	t.Helper()
	select {
	case u, ok := <-w.Updates():
		if !ok {
			t.Fatal("watch ended")
		}
		return u
	case <-within(t, patience).Done():
		t.Fatalf("no update within %s", patience)
	}
	return bus.Update{}
}

func expect(t testing.TB, w *bus.Watch, kind bus.UpdateKind, key string) bus.Update {
	t.Helper()
	u := next(t, w)
	if u.Kind != kind || u.Entry.Key != key {
		t.Fatalf("update %s %q, want %s %q", u.Kind, u.Entry.Key, kind, key)
	}
	return u
}

func TestWatch(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	b := bucket(t, c, bus.RegistryBucket)
	ctx := t.Context()
	empty := b.Watch(ctx, bus.HeadPattern)
	expect(t, empty, bus.CaughtUp, "")
	if _, err := b.Put(ctx, bus.HeadKey("a"), []byte("1")); err != nil {
		t.Fatal(err)
	}
	expect(t, empty, bus.Put, bus.HeadKey("a"))
	w := b.Watch(ctx, bus.HeadPattern)
	if u := expect(t, w, bus.Put, bus.HeadKey("a")); string(u.Entry.Value) != "1" {
		t.Fatalf("value %q", u.Entry.Value)
	}
	expect(t, w, bus.CaughtUp, "")
	if err := b.Delete(ctx, bus.HeadKey("a"), 0); err != nil {
		t.Fatal(err)
	}
	expect(t, w, bus.Deleted, bus.HeadKey("a"))
	w.Close()
	if _, open := <-w.Updates(); open {
		t.Fatal("updates after close")
	}
	empty.Close()
}

// B3: a watch of a memory bucket that vanishes with its server, and of a file bucket that stays.
func TestWatchResyncsAfterRestart(t *testing.T) {
	t.Parallel()
	s, c := mesh(t)
	ctx := t.Context()
	heads, leases := bucket(t, c, bus.RegistryBucket), bucket(t, c, bus.LeasesBucket)
	if _, err := heads.Put(ctx, bus.HeadKey("a"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Put(ctx, bus.NodeKey("n1"), nil); err != nil {
		t.Fatal(err)
	}
	hw, lw := heads.Watch(ctx, bus.HeadPattern), leases.Watch(ctx, bus.NodePattern)
	defer hw.Close()
	defer lw.Close()
	expect(t, hw, bus.Put, bus.HeadKey("a"))
	expect(t, hw, bus.CaughtUp, "")
	expect(t, lw, bus.Put, bus.NodeKey("n1"))
	expect(t, lw, bus.CaughtUp, "")
	before := c.ServerID()
	back := make(chan struct{}, 8)
	cancel := c.OnReconnect(func() { back <- struct{}{} })
	defer cancel()
	s.Restart()
	<-back
	if c.ServerID() == before {
		t.Fatal("a restarted server has the same id")
	}
	afterResync(t, hw, bus.HeadKey("a"))
	waitUntil(t, func() bool {
		return c.EnsureBase(ctx, bus.BaseConfig{LeaseTTL: 3 * time.Second, MemoryState: true}) == nil
	})
	if _, err := leases.Put(ctx, bus.NodeKey("n2"), nil); err != nil {
		t.Fatal(err)
	}
	afterResync(t, lw, bus.NodeKey("n2"))
}

// afterResync reads until the watch tells of key, and wants it to have told of nothing else since it said Resync last. It
// may say so more than once: what it opened on a server that is going down ends with the server.
func afterResync(t testing.TB, w *bus.Watch, key string) {
	t.Helper()
	resynced, other := false, ""
	for {
		u := next(t, w)
		switch u.Kind {
		case bus.Resync:
			resynced, other = true, ""
		case bus.CaughtUp:
		default:
			if u.Entry.Key == key && resynced && other == "" {
				return
			}
			if u.Entry.Key == key || !resynced {
				t.Fatalf("update %s %q (resynced: %t, before it: %q), want %q alone", u.Kind, u.Entry.Key, resynced, other, key)
			}
			other = u.Entry.Key
		}
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, _ *meshtest.Server, c *bus.Conn) {
		t.Helper()
		const ttl = 3 * time.Second
		b := bucket(t, c, bus.LeasesBucket)
		w := b.Watch(t.Context(), bus.LeaderKey)
		defer w.Close()
		expect(t, w, bus.CaughtUp, "")
		rev, err := b.Create(t.Context(), bus.LeaderKey, []byte("c1"))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, w, bus.Put, bus.LeaderKey)
		// Renewed at a third for ten leases: it must not expire.
		for range 30 {
			<-time.After(ttl / 3)
			if rev, err = b.Update(t.Context(), bus.LeaderKey, []byte("c1"), rev); err != nil {
				t.Fatal(err)
			}
			expect(t, w, bus.Put, bus.LeaderKey)
		}
		if _, err := b.Create(t.Context(), bus.LeaderKey, []byte("c2")); !errors.Is(err, bus.ErrConflict) {
			t.Fatalf("create while held: %v", err)
		}
		renewed := time.Now()
		expect(t, w, bus.Expired, bus.LeaderKey)
		if late := time.Since(renewed) - ttl; late < 0 || late > time.Second {
			t.Fatalf("expired %s after the lease", late)
		}
		if _, err := b.Get(t.Context(), bus.LeaderKey); !errors.Is(err, bus.ErrNotFound) {
			t.Fatalf("get after expiry: %v", err)
		}
		if keys, err := b.Keys(t.Context(), ">"); err != nil || len(keys) != 0 {
			t.Fatalf("keys after expiry: %v, %v", keys, err)
		}
		if _, err := b.Update(t.Context(), bus.LeaderKey, []byte("c1"), rev); !errors.Is(err, bus.ErrConflict) {
			t.Fatalf("late renewal: %v, want ErrConflict", err)
		}
		if _, err := b.Create(t.Context(), bus.LeaderKey, []byte("c2")); err != nil {
			t.Fatalf("create over an expiry marker: %v", err)
		}
		synctest.Wait()
	})
}
