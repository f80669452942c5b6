package iceberg

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// state is a table as the catalog has it.
type state struct {
	pointer
	role role
	// at is where the newest metadata is; empty when only the catalog knows.
	at string
	// meta is nil while the table is not in the catalog.
	meta table.Metadata
}

// version is one schema version of a source table. Its content may be that of an earlier one, which the table has since left.
type version struct {
	table  rows.TableID
	number uint32
	hash   rows.Fingerprint
}

// tables finds the sink's tables. It is owned by one goroutine.
type tables struct {
	p       *place
	catalog catalog
	found   map[version]map[role]*layout
}

func openTables(ctx context.Context, p *place) (*tables, error) {
	c, err := openCatalog(ctx, p, p.session())
	if err != nil {
		return nil, err
	}
	return &tables{p: p, catalog: c, found: make(map[version]map[role]*layout)}, nil
}

func (t *tables) close() error { return t.catalog.close() }

// load reads a table. had is what is known of it, read again only if it moved.
func (t *tables) load(ctx context.Context, r role, id rows.TableID, had *state) (*state, error) {
	s := &state{pointer: pointer{t.p.ice.Namespace, t.p.name(r, id)}, role: r}
	var err error
	if s.at, s.meta, err = t.catalog.load(ctx, s.pointer, had); err != nil {
		return nil, fmt.Errorf("read metadata of table %s: %w", s.name, err)
	}
	return s, nil
}

// layouts are how rows of a schema version go into files, for each of the sink's tables; nil while one of them is not there or has
// to change first, which only the committer may do.
func (t *tables) layouts(ctx context.Context, s *rows.Schema) (map[role]*layout, error) {
	key := version{s.Table(), s.Version(), s.Fingerprint()}
	if l := t.found[key]; l != nil {
		return l, nil
	}
	all := make(map[role]*layout)
	for _, r := range t.p.roles() {
		st, err := t.load(ctx, r, s.Table(), nil)
		if err != nil {
			return nil, err
		}
		if st.meta == nil || st.meta.Properties()[propOwner] != t.p.owner() {
			return nil, nil
		}
		e, err := t.p.evolution(r, s, st.meta)
		if err != nil {
			return nil, err
		}
		before := e.known
		if err := e.run(); err != nil || !slices.Equal(before.Columns, e.known.Columns) {
			return nil, nil //nolint:nilerr // the committer says what is wrong, in order with the rows
		}
		if all[r], err = layoutOf(r, s, st.meta, t.p.where); err != nil {
			return nil, err
		}
	}
	t.found[key] = all
	return all, nil
}

// owner marks the tables of the sink.
func (p *place) owner() string { return p.cfg.Job + "." + p.cfg.Sink.Name }

// evolution is what a schema version asks of a table.
func (p *place) evolution(r role, s *rows.Schema, meta table.Metadata) (*evolution, error) {
	known, err := knownOf(meta.Properties())
	if err != nil {
		return nil, err
	}
	return &evolution{
		schema: s, role: r, policy: policyOf(p.cfg.Sink), drop: p.ice.Allows(spec.AllowDropColumn),
		where: p.where + ", table " + string(s.Table()), job: p.cfg.Job,
		fields: meta.CurrentSchema().Fields(), known: known, last: meta.LastColumnID(),
	}, nil
}

func policyOf(s spec.Sink) spec.SchemaChange {
	if s.SchemaChange == "" {
		return spec.Lenient
	}
	return s.SchemaChange
}

// create is the first metadata of a table.
func (p *place) create(r role, s *rows.Schema) (table.Metadata, error) {
	e := &evolution{
		schema: s, role: r, policy: policyOf(p.cfg.Sink), where: p.where + ", table " + string(s.Table()), job: p.cfg.Job, first: true,
	}
	if r == changelog {
		e.fields = changeColumns()
		e.last = 10
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	sc := e.built()
	partition, err := specFor(p.partition(r), s, sc, e.where)
	if err != nil {
		return nil, err
	}
	columns, err := json.Marshal(e.known)
	if err != nil {
		return nil, fmt.Errorf("encode the columns of %s: %w", s.Table(), err)
	}
	id := uuid.New()
	meta, err := table.NewMetadataWithUUID(sc, partition, table.UnsortedSortOrder, p.location(p.name(r, s.Table()), id), iceberg.Properties{
		propOwner: p.owner(), propSource: string(s.Table()), propRole: string(r), propColumns: string(columns),
		table.PropertyFormatVersion: strconv.Itoa(formatVersion),
		// Others that write must do as this sink does.
		"write.delete.mode":         "merge-on-read",
		table.ParquetCompressionKey: "zstd", table.ParquetCompressionLevelKey: strconv.Itoa(compressionLevel),
		table.MaxSnapshotAgeMsKey:   strconv.FormatInt(snapshotAge.Milliseconds(), 10),
		table.MinSnapshotsToKeepKey: strconv.Itoa(snapshotsMin),
	}, id)
	if err != nil {
		return nil, fmt.Errorf("make table for %s: %w", s.Table(), err)
	}
	return meta, nil
}

// partition is how a new table is divided. A current table can only be by its key: a delete has to be where the row is.
func (p *place) partition(r role) []spec.PartitionOf {
	switch {
	case r == changelog:
		return p.ice.Partitions()
	case p.ice.Buckets > 1:
		return []spec.PartitionOf{{Buckets: p.ice.Buckets}}
	}
	return nil
}

// built is the schema that an evolution has left.
func (e *evolution) built() *iceberg.Schema {
	var keys []int
	for _, f := range e.fields {
		if f.Required && e.role == current {
			keys = append(keys, f.ID)
		}
	}
	return iceberg.NewSchemaWithIdentifiers(0, keys, e.fields...)
}

// evolved is a table's metadata after the change of its columns that a schema version asks for; meta itself when it asks for none.
func (p *place) evolved(r role, s *rows.Schema, meta table.Metadata) (table.Metadata, []string, error) {
	e, err := p.evolution(r, s, meta)
	if err != nil {
		return nil, nil, err
	}
	before := e.known
	if s.Version() < before.Version {
		return meta, nil, nil // rows that were late: the table has gone on
	}
	if err := e.run(); err != nil {
		return nil, nil, err
	}
	if before.Version == e.known.Version && slices.Equal(before.Columns, e.known.Columns) {
		return meta, nil, nil
	}
	columns, err := json.Marshal(e.known)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the columns of %s: %w", s.Table(), err)
	}
	updates := []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{propColumns: string(columns)})}
	if sc := e.built(); !sc.Equals(meta.CurrentSchema()) {
		sc.ID = 0
		for _, had := range meta.Schemas() {
			sc.ID = max(sc.ID, had.ID+1)
		}
		updates = append(updates, table.NewAddSchemaUpdate(sc), table.NewSetCurrentSchemaUpdate(-1))
	}
	next, err := table.UpdateTableMetadata(meta, updates, "")
	if err != nil {
		return nil, nil, fmt.Errorf("change columns of %s: %w", s.Table(), err)
	}
	return next, e.notes, nil
}

// owned refuses a table of the name that is somebody else's.
func (p *place) owned(s *state, id rows.TableID) error {
	props := s.meta.Properties()
	where := p.where + ", table " + string(id)
	switch {
	case props[propOwner] == "":
		return fault.New(fault.SinkNameClash, where, fmt.Sprintf("table %s.%s is in the catalog and no sink of Weir made it", s.namespace, s.name), "table", s.name)
	case props[propOwner] != p.owner():
		return fault.New(fault.SinkNameClash, where, fmt.Sprintf("table %s.%s belongs to sink %s", s.namespace, s.name, props[propOwner]), "table", s.name)
	case props[propSource] != string(id) || props[propRole] != string(s.role):
		return fault.New(fault.SinkNameClash, where, fmt.Sprintf("table %s.%s is that of %s", s.namespace, s.name, props[propSource]), "table", s.name)
	}
	return nil
}

// unknown refuses to go on without a table that was there: a new one would have the rows since then only.
func (b *build) unknown(ctx context.Context, s *state, id rows.TableID) error {
	had, err := b.c.tables.catalog.had(ctx, s.pointer)
	if err != nil || !had {
		return err
	}
	return fault.New(fault.SinkMissingTable, b.c.where+", table "+string(id), fmt.Sprintf("table %s.%s is no longer in the catalog, and it was there before",
		s.namespace, s.name), "table", s.namespace+"."+s.name)
}

// maxAhead is how much later than now a table's newest change may be, by which Iceberg lets clocks differ.
const maxAhead = time.Minute

// timely asks to try again when a table is from the future: Iceberg has no snapshot that is older than the one before it.
func (p *place) timely(s *state, now time.Time) error {
	changed := time.UnixMilli(s.meta.LastUpdatedMillis()).UTC()
	if !changed.After(now.Add(maxAhead)) {
		return nil
	}
	return fault.New(fault.SinkBusy, p.where, fmt.Sprintf("table %s was last changed at %s, and it is %s here: the clock of this node or of another engine is wrong",
		s.name, changed.Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
}

// nextMetadata names the metadata file that follows another.
func nextMetadata(root, last string) string {
	n := 0
	if last != "" {
		digits, _, _ := strings.Cut(path.Base(last), "-")
		if v, err := strconv.Atoi(digits); err == nil {
			n = v + 1
		}
	}
	return fmt.Sprintf("%s/metadata/%05d-%s.metadata.json", root, n, uuid.New())
}

// stagedName names a file that an attempt writes and nothing points at yet.
func stagedName(root string, id source.Identity, n int) string {
	return fmt.Sprintf("%s/data/%s-%s-%d-%d.parquet", root, id.Life, id.Fence, id.Subtask.Index, n)
}
