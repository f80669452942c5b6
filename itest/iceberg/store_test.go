package iceberg

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
)

// TestFromMySQLToObjectStore copies and follows a table into an S3 server while every process of the mesh is killed, and NATS too, and
// the store all the while refuses requests, or does them and loses the answer, or half of it, and is too late for the sink, or silent.
func TestFromMySQLToObjectStore(t *testing.T) {
	my := harness.StartMySQL(t, harness.MySQLConfig{})
	from := startMySQLTable(t, my)
	catalog := harness.StartPostgres(t, harness.PostgresConfig{})
	store := harness.StartObjectStore(t, "lake")
	n := startNetwork(t, store.URL, rig.Seed(t))
	n.harm(20)
	l := start(t, from, catalog, newStoreJudge(t, store), flow{
		kind: "mysql", url: my.URL(""), tables: `"shop.*"`, reader: mesh.CDCMySQL, warehouse: "s3://lake/house",
		more: fmt.Sprintf("    s3: {endpoint: %q, region: %s, access_key: %s, secret_key: %s}\n", n.url, store.Region, store.AccessKey, store.SecretKey),
	})
	n.order(late, stalled)
	l.kill(t, l.mesh.Of(mesh.CDCMySQL)[0].Process, l.mesh.Of(mesh.Coordinator)[0].Process, l.mesh.NATS.Process)
	harness.Await(t, 60*time.Second, "the sink to lose its patience", func(context.Context) error {
		if left := n.missing(1, late, stalled); len(left) > 0 {
			return fmt.Errorf("%v is to come, of %v", left, n.faults())
		}
		return nil
	})
	l.kill(t, l.mesh.Of(mesh.Sink)[0].Process)
	for round := 51; len(n.missing(3, refused, lost, torn)) > 0; round++ {
		if round == 80 {
			t.Fatalf("too few of %v: %v", n.missing(3, refused, lost, torn), n.faults())
		}
		l.change(t, round, 5)
		l.mesh.CaughtUp(t, "lake")
	}
	l.mesh.CaughtUp(t, "lake")
	l.tear(t, n)
	n.harm(0)
	t.Logf("faults: %v", n.faults())
	l.verdict(t)
	log, err := os.ReadFile(l.mesh.Of(mesh.Sink)[0].LogPath())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		if !json.Valid(line) {
			t.Errorf("a library writes beside the log: %s", line)
		}
	}
}

// tear changes the source and kills the sink while answers of the store are torn. Only the kill ends an attempt.
func (l *scene) tear(t *testing.T, n *network) {
	t.Helper()
	attempt, before := l.mesh.Status(t, "lake").Fence, n.faults()[torn]
	n.tear()
	l.kill(t, l.mesh.Of(mesh.Sink)[0].Process)
	for round := 30; n.faults()[torn] < before+30; round++ {
		if round == 50 {
			t.Fatalf("only %d answers are torn", n.faults()[torn]-before)
		}
		l.change(t, round, 5)
		l.mesh.CaughtUp(t, "lake")
	}
	if now := l.mesh.Status(t, "lake").Fence; now != attempt+1 {
		t.Errorf("%d attempts while %d answers were torn", now-attempt, n.faults()[torn]-before)
	}
}
