//go:build !race

package iceberg

import (
	"fmt"
	"testing"

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
