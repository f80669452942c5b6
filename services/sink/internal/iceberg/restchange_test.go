package iceberg

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"pgregory.net/rapid"
)

// essence is what a server must agree on with the sink.
func essence(tb rapid.TB, m table.Metadata) string {
	tb.Helper()
	text, err := json.MarshalIndent(map[string]any{
		"schemas": m.Schemas(), "schema": m.CurrentSchema().ID, "columns": m.LastColumnID(), "properties": m.Properties(),
		"snapshots": m.Snapshots(), "refs": maps.Collect(m.Refs()), "head": head(m), "sequence": m.LastSequenceNumber(),
	}, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// evolveAny makes any changes that commits are made of.
func evolveAny(t *rapid.T, m table.Metadata, label string) table.Metadata {
	for i := range rapid.IntRange(0, 6).Draw(t, label) {
		id := rapid.Int64Range(1, 1<<60).Draw(t, "id")
		var updates table.Updates
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0: // a column more, in a schema that is there or not
			s := iceberg.NewSchema(len(m.Schemas()), append(slices.Clone(m.CurrentSchema().Fields()),
				iceberg.NestedField{ID: m.LastColumnID() + 1, Name: fmt.Sprint("c", m.LastColumnID()+1), Type: iceberg.PrimitiveTypes.Int64})...)
			updates = table.Updates{table.NewAddSchemaUpdate(s), table.NewSetCurrentSchemaUpdate(-1)}
		case 1: // an earlier form
			all := m.Schemas()
			updates = table.Updates{table.NewSetCurrentSchemaUpdate(all[rapid.IntRange(0, len(all)-1).Draw(t, "schema")].ID)}
		case 2:
			updates = table.Updates{table.NewSetPropertiesUpdate(iceberg.Properties{fmt.Sprint("p", id%5): fmt.Sprint(id)})}
		case 3:
			updates = table.Updates{table.NewRemovePropertiesUpdate([]string{fmt.Sprint("p", id%5)})}
		case 4, 5: // rows
			id = (m.LastSequenceNumber()+1)*10 + id%10 // no snapshot ever had it
			schema := m.CurrentSchema().ID
			updates = table.Updates{
				table.NewAddSnapshotUpdate(&table.Snapshot{
					SnapshotID: id, ParentSnapshotID: head(m), SequenceNumber: m.LastSequenceNumber() + 1, TimestampMs: m.LastUpdatedMillis() + 1,
					ManifestList: fmt.Sprint("list-", id), SchemaID: &schema, Summary: &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"n": fmt.Sprint(i)}},
				}),
				table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0),
			}
			if id%3 == 0 {
				updates = append(updates, table.NewSetSnapshotRefUpdate(fmt.Sprint("tag", id%2), id, table.TagRef, 1000, 0, 0))
			}
		case 6: // expiry
			var old []int64
			for _, s := range m.Snapshots() {
				if h := head(m); h == nil || s.SnapshotID != *h {
					old = append(old, s.SnapshotID)
				}
			}
			if len(old) == 0 {
				continue
			}
			updates = table.Updates{table.NewRemoveSnapshotsUpdate(old[:rapid.IntRange(1, len(old)).Draw(t, "expired")], false)}
		}
		next, err := table.UpdateTableMetadata(m, updates, "")
		if err != nil {
			t.Fatal(err)
		}
		m = next
	}
	return m
}

// What the sink tells a server makes of what the server has what the sink has, after a trip as JSON; holds there and nowhere else;
// and leaves properties of others alone.
func TestChangeOf(t *testing.T) {
	t.Parallel()
	first, err := table.NewMetadata(iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}),
		iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file:///lake/t", iceberg.Properties{"p0": "x"})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		base := evolveAny(t, first, "before")
		next := evolveAny(t, base, "after")
		made, err := changeOf(pointer{"lake", "t"}, base, next)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var sent tableChange
		if err := json.Unmarshal(text, &sent); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		holds := func(m table.Metadata) error {
			var all []error
			for _, q := range sent.Requirements {
				all = append(all, q.Validate(m))
			}
			return errors.Join(all...)
		}
		if err := holds(base); err != nil {
			t.Fatalf("on what it was made of: %v", err)
		}
		got, err := table.UpdateTableMetadata(base, sent.Updates, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if a, b := essence(t, got), essence(t, next); a != b {
			t.Fatalf("the server has\n%s\nthe sink\n%s\nafter\n%s", a, b, text)
		}
		if moved := head(next); moved != nil && (head(base) == nil || *moved != *head(base)) && holds(next) == nil {
			t.Fatal("it holds on a table that has other rows")
		}
		foreign, err := table.UpdateTableMetadata(base, table.Updates{table.NewSetPropertiesUpdate(iceberg.Properties{"theirs": "1"})}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err = table.UpdateTableMetadata(foreign, sent.Updates, ""); err != nil || holds(foreign) != nil || got.Properties()["theirs"] != "1" {
			t.Fatalf("another's property: %v, %v", got.Properties(), err)
		}
	})
}

// A change that no commit of the sink makes is not sent without a part of it.
func TestInexpressibleChange(t *testing.T) {
	t.Parallel()
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	base, err := table.NewMetadata(sc, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "file:///lake/t", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]table.Update{
		"location": table.NewSetLocationUpdate("file:///other"), "version": table.NewUpgradeFormatVersionUpdate(3),
		"partition": table.NewAddPartitionSpecUpdate(new(iceberg.NewPartitionSpec(
			iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "b", Transform: iceberg.BucketTransform{NumBuckets: 4}})), false),
	} {
		next, err := table.UpdateTableMetadata(base, []table.Update{u}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := changeOf(pointer{}, base, next); !errors.Is(err, errInexpressible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
