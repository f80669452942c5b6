package iceberg

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// An epoch pays for a part of what is owed, the oldest files first. A file by itself is written anew only to be rid of deletes.
func TestWhatIsOwedIsPaidInParts(t *testing.T) {
	t.Parallel()
	file := func(seq int64, bytes int, deletes ...iceberg.DataFile) table.FileScanTask {
		b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, fmt.Sprint("f", seq), iceberg.ParquetFile, nil, nil, nil, 1, int64(bytes))
		if err != nil {
			t.Fatal(err)
		}
		return table.FileScanTask{File: b.Build(), EqualityDeleteFiles: deletes, DataSequenceNumber: &seq}
	}
	paths := func(groups []table.CompactionTaskGroup) (all []string) {
		for _, g := range groups {
			for _, task := range g.Tasks {
				all = append(all, task.File.FilePath())
			}
		}
		return all
	}
	d := file(9, 1).File
	tasks := []table.FileScanTask{file(5, full, d), file(4, full/2, d), file(3, full/4), file(2, full), file(1, full/2, d)}
	if got := paths(due(tasks, true)); !slices.Equal(got, []string{"f1", "f3", "f4"}) {
		t.Errorf("%v are paid for first", got)
	}
	if got := paths(due(tasks[:1], true)); !slices.Equal(got, []string{"f5"}) {
		t.Errorf("%v are paid for; a large file has to be as well", got)
	}
	if got := paths(due(tasks[2:3], true)); len(got) > 0 {
		t.Errorf("%v are written anew by themselves", got)
	}
}

// A table in parts may have as many files of deletes for each part as a whole one that is as big.
func TestPartsBearTheirOwnDeletes(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{0, smallShare, 10 * smallShare, 1 << 30, 1 << 40} {
		if whole, parts := bearable(bytes, 1), bearable(16*bytes, 16); parts != 16*whole {
			t.Errorf("%d bytes bear %d files of deletes, 16 parts of them %d", bytes, whole, parts)
		}
	}
}
