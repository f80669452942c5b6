package iceberg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

func both(i *spec.IcebergSink) { i.Changelog = "{table}_log" }

func cells(all []sinktest.Row) string {
	var out []string
	for _, r := range all {
		text := r.Cells["id"] + "=" + r.Cells["name"]
		if r.Op != 0 {
			text = r.Op.String() + " " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// The seed's case by hand: 4 inserts, 2 updates, 1 delete give 9 images and 3 rows.
func TestSeedCase(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, both))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}, image{rows.OpInsert, 2, "b"}, image{rows.OpInsert, 3, "c"}, image{rows.OpInsert, 4, "d"}))
	s.epoch(t, s.batch(t, goods,
		image{rows.OpUpdateBefore, 1, "a"}, image{rows.OpUpdateAfter, 1, "A"},
		image{rows.OpUpdateBefore, 2, "b"}, image{rows.OpUpdateAfter, 2, "B"}, image{rows.OpDelete, 3, "c"}))
	log := s.rows(t, changelog, "shop.goods")
	want := "insert 1=a, insert 2=b, insert 3=c, insert 4=d, update_before 1=a, update_after 1=A, update_before 2=b, update_after 2=B, delete 3=c"
	if got := cells(log); strings.ReplaceAll(got, "-", "_") != want || len(log) != 9 {
		t.Errorf("the changelog is %s", got)
	}
	now := make(map[string]string)
	for _, r := range s.rows(t, current, "shop.goods") {
		now[r.Cells["id"]] = r.Cells["name"]
	}
	if fmt.Sprint(now) != "map[1:A 2:B 4:d]" {
		t.Errorf("the rows are %v", now)
	}
	for _, r := range []role{changelog, current} {
		if got := s.state(t, r).meta.Properties()["weir.lake.epoch"]; got != "2" {
			t.Errorf("the properties of %s say epoch %s, want 2", r, got)
		}
	}
}

// Epochs on ten keys, enough for every debt to be paid: files, deletes, snapshots and manifests stay few, the properties stay, and so
// do the rows. A thousand of them, with their times, are in itest/iceberg.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, both))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 0, "0"}))
	for _, r := range []role{changelog, current} {
		s.alter(t, r, iceberg.Properties{table.MaxSnapshotAgeMsKey: "1", table.MinSnapshotsToKeepKey: "3"})
	}
	epochs := int64(120)
	if raced {
		epochs = 70
	}
	for i := int64(1); i < epochs; i++ {
		s.epoch(t, s.batch(t, goods, image{rows.OpUpdateAfter, i % 10, fmt.Sprint(i)}))
	}
	for r, limit := range map[role][2]int64{current: {2 * tier, fewDeletes}, changelog: {2 * tier, 0}} {
		st := s.state(t, r)
		if n := total(st.meta, "total-data-files"); n > limit[0] {
			t.Errorf("%s has %d data files", r, n)
		}
		if n := total(st.meta, "total-delete-files"); n > limit[1] {
			t.Errorf("%s has %d delete files", r, n)
		}
		if n := len(st.meta.Snapshots()); n > expiry+10 {
			t.Errorf("%s has %d snapshots", r, n)
		}
		list, err := st.meta.CurrentSnapshot().Manifests(s.p.fs)
		if err != nil || len(list) > 2*manifests {
			t.Errorf("%s has %d manifests, %v", r, len(list), err)
		}
		if got := st.meta.Properties()["weir.lake.epoch"]; got != fmt.Sprint(epochs) {
			t.Errorf("the properties of %s say epoch %s", r, got)
		}
	}
	if n := len(s.rows(t, changelog, "shop.goods")); int64(n) != epochs {
		t.Errorf("the changelog has %d rows", n)
	}
	now := s.rows(t, current, "shop.goods")
	if len(now) != 10 {
		t.Errorf("%d rows, want 10: %s", len(now), cells(now))
	}
	for _, r := range now {
		want := fmt.Sprint(epochs/10-1) + r.Cells["id"]
		if r.Cells["name"] != want {
			t.Errorf("row %s is %s, want %s", r.Cells["id"], r.Cells["name"], want)
		}
	}
}

// A table of many epochs in a short time has no more snapshots than a commit can write and a reader read, unless it is told to.
func TestManySnapshots(t *testing.T) {
	t.Parallel()
	made := func(n int, age string) table.Metadata {
		sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
		meta, err := table.NewMetadata(sc, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file:///none", iceberg.Properties{table.MaxSnapshotAgeMsKey: age})
		if err != nil {
			t.Fatal(err)
		}
		b, err := table.MetadataBuilderFromBase(meta, "")
		if err != nil {
			t.Fatal(err)
		}
		var parent *int64
		for i := range int64(n) {
			s := &table.Snapshot{
				SnapshotID: i + 1, ParentSnapshotID: parent, SequenceNumber: i + 1, TimestampMs: time.Now().UnixMilli() - 100*(int64(n)-i),
				ManifestList: "file:///none", Summary: &table.Summary{Operation: table.OpAppend},
			}
			parent = &s.SnapshotID
			if err := b.AddSnapshot(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.SetSnapshotRef(table.MainBranch, int64(n), table.BranchRef); err != nil {
			t.Fatal(err)
		}
		if meta, err = b.Build(); err != nil {
			t.Fatal(err)
		}
		return meta
	}
	for _, tt := range []struct {
		n    int
		age  string
		gone int
	}{
		{snapshotsMax, "300000", 0},
		{snapshotsMax + snapshotsMin, "300000", snapshotsMin + expiry},
		{snapshotsMax + snapshotsMin, "3600000", 0},
	} {
		meta := made(tt.n, tt.age)
		files := func(context.Context) (iceio.IO, error) { return localFiles{}, nil }
		tx := table.New(table.Identifier{"lake", "t"}, meta, "file:///none", files, nil).NewTransaction()
		if gone, err := expire(meta, tx); err != nil || len(gone) != tt.gone {
			t.Errorf("%d snapshots that may be %s ms old: %d go, %v; want %d", tt.n, tt.age, len(gone), err, tt.gone)
		}
	}
}

// Files of attempts that died go once nothing can name them, and no others.
func TestOrphans(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Changelog, nil))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	durable := s.stage(t, s.batch(t, goods, image{rows.OpInsert, 2, "b"}))
	s.stage(t, s.batch(t, goods, image{rows.OpInsert, 3, "never acknowledged"}))
	dir := filepath.Join(pathOf(s.state(t, changelog).meta.Location()), "data")
	foreign := filepath.Join(dir, "somebody-1-else-s.parquet")
	if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := count(); n != 4 {
		t.Fatalf("%d files, want 4", n)
	}
	s.start(t)
	s.commit(t, durable)
	if n := count(); n != 4 {
		t.Errorf("%d files after an epoch of the older attempt, want all 4: another one may be durable", n)
	}
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 4, "d"}))
	if n := count(); n != 4 { // one went, one came
		t.Errorf("%d files after an epoch of this attempt, want 4", n)
	}
	if got := cells(s.rows(t, changelog, "shop.goods")); got != "insert 1=a, insert 2=b, insert 4=d" {
		t.Errorf("the changelog is %s", got)
	}
}

// Another engine's commit between the read and the swap makes the epoch be built anew, not lost and not repeated.
func TestForeignCommit(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	c := s.stage(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}, image{rows.OpInsert, 2, "c"}))
	b := &build{c: s.c, commit: c}
	pieces := make([]*piece, len(c.Staged))
	for i, st := range c.Staged {
		var err error
		if pieces[i], err = parsePiece(st); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.run(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	s.alter(t, current, iceberg.Properties{"owner": "analytics"})
	stale := change{moves: []move{{b.done[0].from, &b.done[0].state}}, allow: allowAll}
	if _, err := s.c.tables.catalog.apply(t.Context(), stale); !errors.Is(err, errMoved) {
		t.Fatalf("a commit on metadata that is no longer the newest: %v", err)
	}
	s.commit(t, c)
	st := s.state(t, current)
	if st.meta.Properties()["owner"] != "analytics" {
		t.Error("the other engine's property is gone")
	}
	if n := len(s.rows(t, current, "shop.goods")); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// A truncate empties the current table and is an image of the changelog, with what came before it in the epoch.
func TestTruncate(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, func(i *spec.IcebergSink) {
		both(i)
		i.Allow, i.Partition = []spec.Allowance{spec.AllowTruncate}, []string{"month", "bucket(3)"}
	}))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	before := s.batch(t, goods, image{rows.OpInsert, 2, "b"})
	b := rows.NewBuilder(goods)
	s.seq++
	b.Truncate(rows.Meta{Op: rows.OpTruncate, Seq: s.seq})
	truncate, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	s.epoch(t, before, *truncate, s.batch(t, goods, image{rows.OpInsert, 3, "c"}))
	if got := cells(s.rows(t, current, "shop.goods")); got != "3=c" {
		t.Errorf("the rows are %s", got)
	}
	if got := cells(s.rows(t, changelog, "shop.goods")); got != "insert 1=a, insert 2=b, truncate NULL=NULL, insert 3=c" {
		t.Errorf("the changelog is %s", got)
	}
}

// A reply that is lost on the way is looked up: the epoch is there, and is not repeated.
func TestLostReply(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, both))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	catalog := s.c.tables.catalog.(*sqlCatalog)
	lossy := &lossy{driver: catalog.db.Driver(), dsn: "file:" + strings.TrimPrefix(s.c.catalog, sqliteScheme) + "?_txlock=immediate"}
	own := catalog.db
	catalog.db = sql.OpenDB(lossy)
	t.Cleanup(func() { _ = own.Close() })
	for i := range int64(3) {
		lossy.lose = 1
		s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 2 + i, "b"}))
		if lossy.lose != 0 {
			t.Fatal("no reply was lost")
		}
	}
	lossy.refuse = 1
	c := s.stage(t, s.batch(t, goods, image{rows.OpInsert, 9, "z"}))
	if _, err := s.c.Commit(t.Context(), c); !errors.Is(err, fault.Transient) {
		t.Errorf("a commit that did not happen: %v, want transient", err)
	}
	s.commit(t, c)
	if n := len(s.rows(t, changelog, "shop.goods")); n != 5 {
		t.Errorf("%d images, want 5", n)
	}
}

// lossy loses the replies of commits: after they were done, or instead of doing them.
type lossy struct {
	driver       driver.Driver
	dsn          string
	lose, refuse int
}

func (l *lossy) Driver() driver.Driver { return l.driver }

func (l *lossy) Connect(context.Context) (driver.Conn, error) {
	c, err := l.driver.Open(l.dsn)
	return &lossyConn{c, l}, err
}

type lossyConn struct {
	driver.Conn
	l *lossy
}

func (c *lossyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return &lossyTx{tx, c.l}, err
}

type lossyTx struct {
	driver.Tx
	l *lossy
}

func (t *lossyTx) Commit() error {
	switch {
	case t.l.refuse > 0:
		t.l.refuse--
		return errors.Join(errors.New("connection reset"), t.Rollback())
	case t.l.lose > 0:
		t.l.lose--
		return errors.Join(t.Tx.Commit(), errors.New("connection reset"))
	}
	return t.Tx.Commit()
}
