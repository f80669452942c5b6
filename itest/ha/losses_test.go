package ha

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/bus"
)

// budget is how many attempts one loss may cost: the leases expire, and what began before all were back begins again.
const budget = 4

// TestLossesOfNATS takes from a cluster of three NATS servers what its replicas are for, one kind after the other, and holds the
// targets against the source in the end: classes 30, 31 and 32 of the failures that exactly-once has to bear.
func TestLossesOfNATS(t *testing.T) {
	r := rig.Start(t, rig.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink, mesh.Sink}, Rate: 80, Seed: rig.Seed(t), Cluster: 3,
	})
	replicated(t, r)
	next(t, r, time.Now())
	t.Run("class 30: two of three are gone", func(t *testing.T) { majorityGone(t, r) })
	if t.Failed() {
		return
	}
	t.Run("class 31: the store of one is an older copy", func(t *testing.T) {
		s := r.Mesh.Cluster.Servers[0]
		older := filepath.Join(t.TempDir(), "jetstream")
		whileDown(t, r, s, func() { harness.CopyDir(t, older, store(s)) })
		next(t, r, time.Now())
		whileDown(t, r, s, func() { harness.CopyDir(t, store(s), older) })
		leanOn(t, r, s)
	})
	if t.Failed() {
		return
	}
	t.Run("class 32: the store of one is damaged", func(t *testing.T) {
		s := r.Mesh.Cluster.Servers[1]
		whileDown(t, r, s, func() { damage(t, store(s)) })
		leanOn(t, r, s)
	})
	if !t.Failed() {
		r.Verdict(t)
	}
}

// majorityGone: one server of three decides nothing. While the others are gone for longer than a lease nothing new becomes durable,
// so nothing new is committed; when they are back the job goes on by itself.
func majorityGone(t *testing.T, r *rig.Rig) {
	t.Helper()
	before := now(t, r)
	gone := r.Mesh.Cluster.Servers[1:]
	for _, s := range gone {
		kill(t, s)
	}
	began := time.Now()
	pauseFor(t, 2*time.Second) // what was durable by then is committed by now
	settled := ledgers(t, r)
	pauseFor(t, r.Records.TTL()+2*time.Second)
	if after := ledgers(t, r); after != settled {
		t.Errorf("without a majority the ledgers went from %v to %v", settled, after)
	}
	down := time.Since(began)
	back := time.Now()
	var starting sync.WaitGroup // neither is ready before the other is there
	failed := make([]error, len(gone))
	for i, s := range gone {
		starting.Go(func() { failed[i] = s.Start(t.Context()) })
	}
	starting.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	m := next(t, r, back)
	after := committed(t, r, m.Epoch)
	t.Logf("two of three servers were gone for %.1f s; durable again %.2f s after they were back, %d attempts later",
		down.Seconds(), m.Completed.Sub(back).Seconds(), after.Fence-before.Fence)
	if after.Fence-before.Fence > budget {
		t.Errorf("the loss has cost %d attempts: %+v", after.Fence-before.Fence, after.Restarts)
	}
	if after.Durable.Epoch <= before.Durable.Epoch {
		t.Errorf("epoch %d is durable, %d was", after.Durable.Epoch, before.Durable.Epoch)
	}
}

// whileDown kills a server, does something to its files, and starts it again.
func whileDown(t *testing.T, r *rig.Rig, s *harness.NATS, do func()) {
	t.Helper()
	before := now(t, r)
	kill(t, s)
	do()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, patience, s.Name+" to be ready again", harness.HTTPReady(s.Monitor+"/healthz"))
	m := next(t, r, time.Now())
	if n := committed(t, r, m.Epoch).Fence - before.Fence; n > budget {
		t.Errorf("the loss of %s has cost %d attempts", s.Name, n)
	}
}

// leanOn makes the mesh depend on a server: another one is killed, so that this one's word is needed for every decision.
func leanOn(t *testing.T, r *rig.Rig, on *harness.NATS) {
	t.Helper()
	servers := r.Mesh.Cluster.Servers
	other := servers[2]
	if other == on {
		other = servers[0]
	}
	kill(t, other)
	since := time.Now()
	m := next(t, r, since)
	committed(t, r, m.Epoch)
	t.Logf("durable again %.2f s after %s was killed, which left %s to decide", m.Completed.Sub(since).Seconds(), other.Name, on.Name)
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, patience, other.Name+" to be ready again", harness.HTTPReady(other.Monitor+"/healthz"))
	next(t, r, time.Now())
}

func kill(t *testing.T, s *harness.NATS) {
	t.Helper()
	s.Kill()
	if _, err := s.Wait(context.WithoutCancel(t.Context())); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%s did not end by SIGKILL: %v", s.Name, err)
	}
}

func pauseFor(t *testing.T, d time.Duration) {
	t.Helper()
	if err := harness.Pause(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// ledgers are the epochs that the two sinks have committed.
func ledgers(t *testing.T, r *rig.Rig) (at [2]int64) {
	t.Helper()
	for i, sink := range []string{rig.Copy, rig.Log} {
		var err error
		at[i], err = harness.Value[int64](t.Context(), r.Target, "postgres", fmt.Sprintf("SELECT epoch FROM shop_%s.weir_ledger WHERE job = '%s'", sink, rig.Job))
		if err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// store is where a server keeps its files.
func store(s *harness.NATS) string { return filepath.Join(filepath.Dir(s.LogPath()), "jetstream") }

// damage truncates what the server has stored of the registry, turns bytes around in what it has of the states, and removes the
// events.
func damage(t *testing.T, store string) {
	t.Helper()
	done := make(map[string]int)
	err := filepath.WalkDir(store, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch stream := filepath.Base(filepath.Dir(filepath.Dir(file))); {
		case d.IsDir() && d.Name() == "WEIR_EVENT":
			done[d.Name()]++
			if err := os.RemoveAll(file); err != nil {
				return err
			}
			return fs.SkipDir
		case !strings.HasSuffix(file, ".blk"):
			return nil
		case stream == "KV_"+bus.RegistryBucket:
			done[stream]++
			info, err := d.Info()
			if err != nil {
				return err
			}
			return os.Truncate(file, info.Size()/2)
		case stream == "WEIR_STATE":
			done[stream]++
			return flip(file)
		}
		return nil
	})
	if err == nil && len(done) < 3 {
		err = errors.New("not everything was found")
	}
	if err != nil {
		t.Fatalf("%v; damaged %v", err, done)
	}
}

// flip turns every 1000th byte of a file around.
func flip(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i := 500; i < len(b); i += 1000 {
		b[i] ^= 0xff
	}
	return os.WriteFile(file, b, 0o600)
}
