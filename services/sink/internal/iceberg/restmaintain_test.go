//go:build !race

package iceberg

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/rows"
)

// Files, snapshots and the log of the ledger stay few, and the server's metadata is left to it.
func TestMaintenanceAtREST(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	target := server.spec(t, "", nil)
	s := newScene(t, target)
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 0, "0"}))
	s.alterAt(server, "lake.shop_goods", iceberg.Properties{table.MaxSnapshotAgeMsKey: "1", table.MinSnapshotsToKeepKey: "3"})
	for i := range int64(60) {
		s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, i % 10, fmt.Sprint(i)}))
	}
	for s.last.Epoch < restLogKept+restLogSlack+10 {
		s.epoch(t) // none of its own, as a sink has them that only waits for another
	}
	st := s.state(t, current)
	if files, snaps := total(st.meta, "total-data-files"), len(st.meta.Snapshots()); files > 2*tier || snaps > expiry+10 {
		t.Errorf("%d data files and %d snapshots", files, snaps)
	}
	if n := len(s.rows(t, current, "shop.goods")); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
	l, err := s.c.tables.catalog.history(t.Context())
	if err != nil || l.Check() != nil || len(l.Log) < restLogKept-1 || len(l.Log) > restLogKept+restLogSlack || l.Ref != s.last {
		t.Errorf("the log has %d entries up to %v: %v, %v", len(l.Log), l.Ref, l.Check(), err)
	}
	ledger := server.tables["lake."+s.p.ledgerName()].meta
	for _, snap := range ledger.Snapshots() {
		if list, err := snap.Manifests(s.p.fs); err != nil || len(list) != 0 {
			t.Fatalf("snapshot %d of the ledger has %d manifests, %v", snap.SnapshotID, len(list), err)
		}
	}
	wantNoMetadata(t, target)
}

func (s *scene) alterAt(server *restServer, name string, props iceberg.Properties) {
	server.mu.Lock()
	defer server.mu.Unlock()
	t := server.tables[name]
	meta, err := table.UpdateTableMetadata(t.meta, table.Updates{table.NewSetPropertiesUpdate(props)}, t.at)
	if err != nil {
		panic(err)
	}
	server.tables[name] = t.next(meta)
}

// branch commits to a branch of a table, behind the oldest snapshot that it has.
func (s *scene) branch(server *restServer, name string) {
	server.mu.Lock()
	defer server.mu.Unlock()
	t := server.tables[name]
	oldest := t.meta.Snapshots()[0]
	list := oldest.ManifestList + ".branch"
	data, err := os.ReadFile(pathOf(oldest.ManifestList))
	if err == nil {
		err = s.p.fs.WriteFile(list, data)
	}
	made := oldest
	made.ParentSnapshotID, made.SnapshotID, made.ManifestList = &oldest.SnapshotID, oldest.SnapshotID^1, list
	made.SequenceNumber, made.TimestampMs = t.meta.LastSequenceNumber()+1, time.Now().UnixMilli()
	var meta table.Metadata
	if err == nil {
		meta, err = table.UpdateTableMetadata(t.meta, table.Updates{
			table.NewAddSnapshotUpdate(&made), table.NewSetSnapshotRefUpdate("audit", made.SnapshotID, table.BranchRef, 0, 0, 0),
		}, t.at)
	}
	if err != nil {
		panic(err)
	}
	server.tables[name] = t.next(meta)
}

// A commit to another branch takes the number of the next snapshot, and no requirement tells: the epoch is built anew.
func TestForeignBranchAtREST(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	s := newScene(t, server.spec(t, "", both))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	tries := 0
	server.before = func(string) {
		if tries++; tries == 1 {
			s.branch(server, "lake.shop_goods")
		}
	}
	s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}))
	if got := cells(s.rows(t, current, "shop.goods")); got != "1=b" || tries < 2 {
		t.Errorf("the rows are %s after %d commits", got, tries)
	}
}

// A branch that is made while snapshots expire keeps the files that it needs.
func TestForeignBranchKeepsItsFiles(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	s := newScene(t, server.spec(t, "", nil))
	s.quiet = true // a rewrite that meets the branch is tried again
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 0, "0"}))
	s.alterAt(server, "lake.shop_goods", iceberg.Properties{table.MaxSnapshotAgeMsKey: "1", table.MinSnapshotsToKeepKey: "3"})
	const name = "lake.shop_goods"
	branched := false
	server.before = func(what string) {
		t := server.tables[name]
		// A commit that rewrites as well meets the branch by its snapshot's number.
		if what == "shop_goods" && !branched && len(t.meta.Snapshots()) >= expiry+3 && total(t.meta, "total-delete-files") < leastDeletes {
			s.branch(server, name)
			branched = true
		}
	}
	had := func() int { return len(server.tables[name].meta.Snapshots()) }
	for i := int64(0); i < 200 && (!branched || had() > expiry); i++ {
		s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, i % 10, fmt.Sprint(i)}))
	}
	if !branched || had() > expiry {
		t.Fatalf("branched %v, %d snapshots", branched, had())
	}
	st := s.state(t, current)
	for ref, at := range st.meta.Refs() {
		s.plainAt(t, st, current, st.meta.SnapshotByID(at.SnapshotID))
		t.Logf("all files of %s are there", ref)
	}
}
