package iceberg

import (
	"errors"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// tableChange is what a commit asks of one table at a REST catalog, as the specification writes it.
type tableChange struct {
	Identifier   identifier         `json:"identifier"`
	Requirements table.Requirements `json:"requirements"`
	Updates      table.Updates      `json:"updates"`
}

type identifier struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

func (p pointer) identifier() identifier { return identifier{[]string{p.namespace}, p.name} }

// errInexpressible says that a table was changed in a way that no commit of the sink makes.
var errInexpressible = errors.New("the change of the table is none that the sink makes")

// changeOf is what makes next of base at a server: it holds only while the table has base's rows, columns and partitions, so what
// others do to its properties in between stays. It is pure.
func changeOf(p pointer, base, next table.Metadata) (tableChange, error) {
	if base.Version() != next.Version() || base.Location() != next.Location() || base.TableUUID() != next.TableUUID() ||
		base.DefaultPartitionSpec() != next.DefaultPartitionSpec() || len(base.PartitionSpecs()) != len(next.PartitionSpecs()) ||
		base.DefaultSortOrder() != next.DefaultSortOrder() || len(base.SortOrders()) != len(next.SortOrders()) {
		return tableChange{}, errInexpressible
	}
	c := tableChange{Identifier: p.identifier(), Requirements: table.Requirements{
		table.AssertTableUUID(base.TableUUID()),
		table.AssertRefSnapshotID(table.MainBranch, head(base)),
		table.AssertCurrentSchemaID(base.CurrentSchema().ID),
		table.AssertDefaultSpecID(base.DefaultPartitionSpec()),
	}}
	c.schemas(base, next)
	c.properties(base.Properties(), next.Properties())
	c.snapshots(base, next)
	return c, nil
}

// head is the newest snapshot of a table; nil when it has none.
func head(m table.Metadata) *int64 {
	if s := m.CurrentSnapshot(); s != nil {
		return &s.SnapshotID
	}
	return nil
}

func (c *tableChange) schemas(base, next table.Metadata) {
	last := -1
	for _, s := range next.Schemas() {
		if !slices.ContainsFunc(base.Schemas(), func(had *iceberg.Schema) bool { return had.ID == s.ID }) {
			c.Updates = append(c.Updates, table.NewAddSchemaUpdate(s))
			last = s.ID
		}
	}
	if last >= 0 {
		c.Requirements = append(c.Requirements, table.AssertLastAssignedFieldID(base.LastColumnID()))
	}
	switch now := next.CurrentSchema().ID; now {
	case base.CurrentSchema().ID:
	case last:
		c.Updates = append(c.Updates, table.NewSetCurrentSchemaUpdate(-1)) // the last one added, whatever number the server gives it
	default:
		c.Updates = append(c.Updates, table.NewSetCurrentSchemaUpdate(now))
	}
}

func (c *tableChange) properties(base, next iceberg.Properties) {
	set := iceberg.Properties{}
	for k, v := range next {
		if had, ok := base[k]; !ok || had != v {
			set[k] = v
		}
	}
	if len(set) > 0 {
		c.Updates = append(c.Updates, table.NewSetPropertiesUpdate(set))
	}
	var gone []string
	for _, k := range slices.Sorted(maps.Keys(base)) {
		if _, ok := next[k]; !ok {
			gone = append(gone, k)
		}
	}
	if len(gone) > 0 {
		c.Updates = append(c.Updates, table.NewRemovePropertiesUpdate(gone))
	}
}

func (c *tableChange) snapshots(base, next table.Metadata) {
	for _, s := range next.Snapshots() {
		if base.SnapshotByID(s.SnapshotID) == nil {
			c.Updates = append(c.Updates, table.NewAddSnapshotUpdate(&s))
		}
	}
	had, has := maps.Collect(base.Refs()), maps.Collect(next.Refs())
	for _, name := range slices.Sorted(maps.Keys(has)) {
		r := has[name]
		if was, ok := had[name]; !ok || !was.Equals(r) {
			c.Updates = append(c.Updates, table.NewSetSnapshotRefUpdate(name, r.SnapshotID, r.SnapshotRefType,
				value(r.MaxRefAgeMs), value(r.MaxSnapshotAgeMs), value(r.MinSnapshotsToKeep)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if _, ok := has[name]; !ok {
			c.Updates = append(c.Updates, table.NewRemoveSnapshotRefUpdate(name))
		}
	}
	for _, s := range base.Snapshots() {
		if next.SnapshotByID(s.SnapshotID) == nil {
			// One at a time: servers made before the plural take no more.
			c.Updates = append(c.Updates, table.NewRemoveSnapshotsUpdate([]int64{s.SnapshotID}, false))
		}
	}
}

func value[T int | int64](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}
