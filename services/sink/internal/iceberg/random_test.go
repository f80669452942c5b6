package iceberg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

var histories = sinktest.HistoryFlags(2, 1, 40)

// Random histories against the model, read by the words of the specification. To look for more: -run TestRandomHistory -seeds 100 -steps 200.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	truncates := func(i *spec.IcebergSink) { i.Allow = []spec.Allowance{spec.AllowTruncate} }
	kinds := map[string]func(t *testing.T) spec.Sink{
		"rows": func(t *testing.T) spec.Sink { return specOf(tempDir(t), spec.Upsert, truncates) },
		"rows in buckets, and changes": func(t *testing.T) spec.Sink {
			return specOf(tempDir(t), spec.Upsert, func(i *spec.IcebergSink) { truncates(i); both(i); i.Buckets = 3 })
		},
		"changes in partitions": func(t *testing.T) spec.Sink {
			return specOf(tempDir(t), spec.Changelog, func(i *spec.IcebergSink) { i.Partition = []string{"day", "bucket(3)"} })
		},
		"REST": func(t *testing.T) spec.Sink {
			return startREST(t).spec(t, spec.CommitTransaction, func(i *spec.IcebergSink) { truncates(i); both(i) })
		},
		"REST in order": func(t *testing.T) spec.Sink {
			return startREST(t).spec(t, spec.CommitOrdered, func(i *spec.IcebergSink) { truncates(i); both(i) })
		},
	}
	for kind, open := range kinds {
		if raced && kind != "rows in buckets, and changes" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			histories.Run(t, func(t *testing.T) sinktest.Fixture {
				t.Helper()
				s := open(t)
				r := newReader(t, s)
				f := sinktest.Fixture{Connector: Connector{}, Resolve: resolve, Spec: s, Truncates: s.Mode == spec.Upsert, Meddle: r.meddle}
				roles := r.p.roles()
				f.Read = r.plain(roles[len(roles)-1])
				if len(roles) > 1 {
					f.Images = r.plain(changelog)
				}
				return f
			})
		})
	}
}

// meddle is a commit of another engine to one of the tables, or to all that are there.
func (r *reader) meddle(tb testing.TB, rng *rand.Rand) {
	tb.Helper()
	for _, id := range []rows.TableID{"shop.Orders", "shop.items", "shop.names"} {
		for _, role := range r.p.roles() {
			if rng.IntN(2) == 0 {
				r.meddleWith(tb, rng, role, id)
			}
		}
	}
}

func (r *reader) meddleWith(tb testing.TB, rng *rand.Rand, role role, id rows.TableID) {
	tb.Helper()
	st, err := r.tables.load(tb.Context(), role, id, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if st.meta == nil || st.meta.CurrentSnapshot() == nil {
		return
	}
	to := &state{pointer: st.pointer, role: role}
	if rng.IntN(5) == 0 { // a name for the newest snapshot, whose files stay for it
		name := fmt.Sprint("tag", rng.IntN(3))
		to.meta, err = table.UpdateTableMetadata(st.meta, []table.Update{
			table.NewSetSnapshotRefUpdate(name, st.meta.CurrentSnapshot().SnapshotID, table.TagRef, 0, 0, 0),
		}, "")
	} else {
		to.meta, err = meddled(tb.Context(), rng, table.New(table.Identifier{st.namespace, st.name}, st.meta, st.at, r.p.files, nil))
	}
	if err == nil {
		to.at, err = r.tables.catalog.stage(tb.Context(), st, to.meta)
	}
	if err == nil {
		_, err = r.tables.catalog.apply(tb.Context(), change{moves: []move{{st, to}}, allow: allowAll})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func meddled(ctx context.Context, rng *rand.Rand, t *table.Table) (table.Metadata, error) {
	tx := t.NewTransaction()
	var err error
	switch rng.IntN(4) {
	case 0: // short lives of snapshots
		err = tx.SetProperties(iceberg.Properties{table.MaxSnapshotAgeMsKey: "1", table.MinSnapshotsToKeepKey: "2"})
	case 1: // the library's own compaction
		var tasks []table.FileScanTask
		if tasks, err = t.Scan().PlanFiles(ctx); err == nil {
			groups := grouped(tasks, func(t table.FileScanTask) (string, bool) { return fmt.Sprint(t.File.Partition()), true }, 1)
			_, err = tx.RewriteDataFiles(ctx, groups, table.RewriteDataFilesOptions{})
		}
	case 2:
		_, err = tx.RewriteManifests(ctx)
	case 3: // rows are deleted by position, and come back in a file of the other engine
		some := iceberg.LessThan(iceberg.Reference("Name of it"), fmt.Sprint("text ", rng.IntN(1000)))
		var all arrow.Table
		if all, err = t.Scan(table.WithRowFilter(some)).ToArrowTable(ctx); err == nil && all.NumRows() > 0 {
			if err = tx.Delete(ctx, some, nil); err == nil {
				err = tx.AppendTable(ctx, all, all.NumRows(), nil)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	st, err := tx.StagedTable()
	if err != nil {
		return nil, err
	}
	return st.Metadata(), nil
}
