package iceberg

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

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
