package iceberg

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// swap puts metadata in the place of a table's, as another engine would.
func (s *scene) swap(t *testing.T, updates ...table.Update) {
	t.Helper()
	st := s.state(t, current)
	next, err := table.UpdateTableMetadata(st.meta, updates, "")
	if err != nil {
		t.Fatal(err)
	}
	to := &state{pointer: st.pointer, role: st.role, meta: next}
	if to.at, err = s.tables.catalog.stage(t.Context(), st, next); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tables.catalog.apply(t.Context(), change{moves: []move{{st, to}}, allow: allowAll}); err != nil {
		t.Fatal(err)
	}
}

// What another engine has deleted by position stays deleted when only some of the files that its delete is of are rewritten.
func TestForeignDeletesStay(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	var large []image
	for i := range int64(4000) {
		large = append(large, image{rows.OpInsert, 1000 + i, fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))})
	}
	large[17].name = "gone"
	s.bare(t, s.batch(t, goods, large...))
	s.bare(t, s.batch(t, goods, image{rows.OpInsert, 1, "gone"}, image{rows.OpInsert, 2, "b"}))
	s.foreign(t, current, func(tx *table.Transaction) error {
		return tx.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("name"), "gone"), nil)
	})
	if r := s.rewriting(t, "shop.goods", s.p.fs); len(r.tasks) != 2 || len(r.tasks[0].DeleteFiles) != 1 || len(r.tasks[1].DeleteFiles) != 1 ||
		r.tasks[0].DeleteFiles[0].FilePath() != r.tasks[1].DeleteFiles[0].FilePath() {
		t.Fatal("the delete is not one of two files")
	}
	for i := range int64(smallTier) {
		s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 10 + i, "c"}))
		if got := cells(s.rows(t, current, "shop.goods")); strings.Contains(got, "=gone") {
			t.Fatalf("after %d epochs a deleted row is back", i+1)
		}
	}
	st := s.state(t, current)
	if n := total(st.meta, "total-data-files"); n > smallTier {
		t.Errorf("%d files: nothing was rewritten", n)
	}
	if n := total(st.meta, "total-delete-files"); n != 1 {
		t.Errorf("%d files of deletes, want that of the large file", n)
	}
}

// Collecting orphans leaves alone what other engines keep in the folder of the metadata.
func TestForeignStatistics(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	st := s.state(t, current)
	dir := filepath.Join(pathOf(st.meta.Location()), "metadata")
	old := time.Now().Add(-2 * metadataAge)
	for _, name := range []string{"20260102_query.stats", "unknown.avro"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	s.swap(t, table.NewSetStatisticsUpdate(table.StatisticsFile{
		SnapshotID: st.meta.CurrentSnapshot().SnapshotID, StatisticsPath: fileScheme + filepath.Join(dir, "20260102_query.stats"),
	}))
	s.start(t)
	s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}))
	if _, err := os.Stat(filepath.Join(dir, "unknown.avro")); !os.IsNotExist(err) {
		t.Errorf("an orphan is left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "20260102_query.stats")); err != nil {
		t.Errorf("the statistics of another engine: %v", err)
	}
}

// A snapshot from the future makes commits wait, and the reason is said.
func TestForeignClock(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	now := *s.state(t, current).meta.CurrentSnapshot()
	next := now
	next.ParentSnapshotID, next.SnapshotID, next.SequenceNumber = &now.SnapshotID, now.SnapshotID^1, now.SequenceNumber+1
	next.TimestampMs = time.Now().Add(time.Hour).UnixMilli()
	s.swap(t, table.NewAddSnapshotUpdate(&next), table.NewSetSnapshotRefUpdate(table.MainBranch, next.SnapshotID, table.BranchRef, 0, 0, 0))
	c := s.stage(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}))
	if _, err := s.c.Commit(t.Context(), c); fault.CodeOf(err) != fault.SinkBusy || !strings.Contains(err.Error(), "clock") {
		t.Fatalf("%v, want %s with the clock", err, fault.SinkBusy)
	}
	if err := s.c.timely(s.state(t, current), time.Now().Add(time.Hour)); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// A table that somebody has dropped is not made anew without its rows, by no attempt, and comes back with what it had.
func TestForeignDrop(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (sp spec.Sink, drop, restore func(t *testing.T)){
		"SQL": func(t *testing.T) (sp spec.Sink, drop, restore func(t *testing.T)) {
			t.Helper()
			dir := tempDir(t)
			do := func(sql string) func(t *testing.T) {
				return func(t *testing.T) {
					t.Helper()
					c, err := openSQL(&place{catalog: sqliteScheme + filepath.Join(dir, "catalog.db")}, "dropper")
					if err != nil {
						t.Fatal(err)
					}
					if _, err := c.db.ExecContext(t.Context(), sql); err != nil {
						t.Fatal(err)
					}
					if err := c.close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			return specOf(dir, spec.Upsert, nil), do("UPDATE iceberg_tables SET table_name = 'away'"), do("UPDATE iceberg_tables SET table_name = 'shop_goods'")
		},
		"REST": func(t *testing.T) (sp spec.Sink, drop, restore func(t *testing.T)) {
			t.Helper()
			server := startREST(t)
			move := func(from, to string) func(t *testing.T) {
				return func(t *testing.T) {
					t.Helper()
					server.mu.Lock()
					defer server.mu.Unlock()
					server.tables[to] = server.tables[from]
					delete(server.tables, from)
				}
			}
			return server.spec(t, "", nil), move("lake.shop_goods", "lake.away"), move("lake.away", "lake.shop_goods")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp, drop, restore := open(t)
			s := newScene(t, sp)
			goods := schemaOf(t, 1, text("name", 2))
			s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
			s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 2, "a"}))
			drop(t)
			staged := s.stage(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}))
			if _, err := s.c.Commit(t.Context(), staged); fault.CodeOf(err) != fault.SinkMissingTable {
				t.Errorf("rows that were staged for the table: %v, want %s", err, fault.SinkMissingTable)
			}
			s.start(t)
			anew := s.stage(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}))
			if _, err := s.c.Commit(t.Context(), anew); fault.CodeOf(err) != fault.SinkMissingTable {
				t.Errorf("rows for a table that another attempt has known: %v, want %s", err, fault.SinkMissingTable)
			}
			restore(t)
			s.commit(t, staged)
			if got := s.rows(t, current, "shop.goods"); len(got) != 2 || !strings.Contains(cells(got), "1=b") {
				t.Errorf("the rows are %s", cells(got))
			}
		})
	}
}
