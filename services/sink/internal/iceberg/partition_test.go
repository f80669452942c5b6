package iceberg

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// A current table in buckets has each row and each delete in that of its key, before maintenance and after it, so that a reader of one
// key reads one bucket.
func TestBucketsOfKey(t *testing.T) {
	t.Parallel()
	const buckets, keys, epochs = 4, 40, 6
	s := newScene(t, specOf(tempDir(t), spec.Upsert, func(i *spec.IcebergSink) { i.Buckets = buckets }))
	goods := schemaOf(t, 1, text("name", 2))
	for n := range int64(epochs) {
		var images []image
		for id := range int64(keys) {
			switch {
			case n == 0:
				images = append(images, image{rows.OpInsert, id, "0"})
			case id%epochs == n:
				images = append(images, image{rows.OpDelete, id, ""})
			case id%epochs > n:
				images = append(images, image{rows.OpUpdateAfter, id, fmt.Sprint(n)})
			}
		}
		s.bare(t, s.batch(t, goods, images...))
	}
	want := cells(s.rows(t, current, "shop.goods"))
	check := func(when string) {
		t.Helper()
		r := s.rewriting(t, "shop.goods", s.p.fs)
		for id := range int64(keys) {
			found, err := r.t.Scan(table.WithRowFilter(iceberg.EqualTo(iceberg.Reference("id"), id))).PlanFiles(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := iceberg.BucketTransform{NumBuckets: buckets}.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: iceberg.NewLiteral(id)}).Val.Any()
			for _, task := range found {
				for _, f := range append(task.EqualityDeleteFiles, task.File) {
					if got := f.Partition()[1000]; got != want {
						t.Errorf("%s a reader of key %d meets a file of bucket %v, the key is in %v", when, id, got, want)
					}
				}
			}
		}
		if got := cells(s.rows(t, current, "shop.goods")); got != want {
			t.Errorf("%s the rows are %s, want %s", when, got, want)
		}
	}
	check("before maintenance")
	before := total(s.state(t, current).meta, "total-delete-files")
	s.epoch(t, s.batch(t, goods, image{rows.OpDelete, 1000, ""}))
	if after := total(s.state(t, current).meta, "total-delete-files"); before < 2*buckets || after >= before/2 {
		t.Fatalf("%d files of deletes before maintenance, %d after it", before, after)
	}
	check("after maintenance")
}

// A current table that another engine has divided by something else than the key is left alone: a delete would have to know where its
// row is.
func TestForeignPartition(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}))
	s.foreign(t, current, func(tx *table.Transaction) error { return tx.UpdateSpec(true).AddIdentity("name").Commit() })
	s.start(t)
	if err := s.w.Write(t.Context(), s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.w.Stage(t.Context(), s.last.Epoch+1); fault.CodeOf(err) != fault.SinkSchemaChange {
		t.Errorf("%v, want %s", err, fault.SinkSchemaChange)
	}
	if got := cells(s.rows(t, current, "shop.goods")); got != "1=a" {
		t.Errorf("the rows are %s", got)
	}
}

// A current table that another engine has divided by the key in another way stops the job for as long as it has files of the old way: a
// delete in a new bucket does not reach a row in an old one, and the row would be there twice.
func TestForeignBuckets(t *testing.T) {
	t.Parallel()
	for name, buckets := range map[string]int{"whole": 0, "in buckets": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, specOf(tempDir(t), spec.Upsert, func(i *spec.IcebergSink) { i.Buckets = buckets }))
			goods := schemaOf(t, 1, text("name", 2))
			s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 1, "a"}, image{rows.OpInsert, 2, "a"}, image{rows.OpInsert, 3, "a"}))
			s.foreign(t, current, func(tx *table.Transaction) error {
				u := tx.UpdateSpec(true)
				if buckets > 0 {
					u = u.RemoveField("id_bucket")
				}
				return u.AddField("id", iceberg.BucketTransform{NumBuckets: 8}, "id_bucket_8").Commit()
			})
			s.start(t)
			c := s.stage(t, s.batch(t, goods, image{rows.OpUpdateAfter, 1, "b"}))
			if _, err := s.c.Commit(t.Context(), c); fault.CodeOf(err) != fault.SinkSchemaChange {
				t.Fatalf("%v, want %s; the rows are %s", err, fault.SinkSchemaChange, cells(s.rows(t, current, "shop.goods")))
			}
			// The other engine rewrites what is there.
			r := s.rewriting(t, "shop.goods", s.p.fs)
			s.foreign(t, current, func(tx *table.Transaction) error {
				made, err := r.group(t.Context(), table.CompactionTaskGroup{Tasks: r.tasks})
				if err != nil {
					return err
				}
				return tx.NewRewrite(nil).ApplyResult(made).Commit(t.Context())
			})
			s.commit(t, c)
			if got := s.rows(t, current, "shop.goods"); len(got) != 3 || !strings.Contains(cells(got), "1=b") {
				t.Errorf("the rows are %s", cells(got))
			}
		})
	}
}

// A key without buckets is refused, not left whole without a word.
func TestKeyWithoutBuckets(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, func(i *spec.IcebergSink) { i.Buckets = 4 }))
	flag, err := rows.NewSchema("shop.flags", 1, "", []rows.Column{{Name: "on", Type: rows.Of(rows.KindBool), KeyPos: 1, ID: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.create(current, flag); fault.CodeOf(err) != fault.SinkUnsupportedType {
		t.Errorf("%v, want %s", err, fault.SinkUnsupportedType)
	}
}
