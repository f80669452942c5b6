package cdcpostgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// book is what one session knows about the tables: those that are captured, and the catalog as last read.
type book struct {
	target   *pgrepl.Target
	where    string
	binary   bool
	veil     *veil
	captured map[pgrepl.TableName]uint32
	names    map[uint32]pgrepl.TableName
	tables   map[uint32]*catalog.Table
	types    map[uint32]catalog.Type

	altered map[uint32]*capturedTable // those with former versions, while the log catches up with their copies
	final   position.LSN              // the end of the transaction being read; kept only where a table was altered
	read    int                       // so much of the present chunk of the log
}

func openBook(ctx context.Context, conn *pgx.Conn, target *pgrepl.Target, captured []capturedTable, catch bool) (*book, error) {
	b := &book{
		target: target, where: target.Where(), captured: make(map[pgrepl.TableName]uint32), names: make(map[uint32]pgrepl.TableName),
		tables: make(map[uint32]*catalog.Table), altered: make(map[uint32]*capturedTable),
	}
	for i := range captured {
		t := &captured[i]
		b.captured[t.TableName], b.names[t.OID], b.veil = t.OID, t.TableName, t.veil
		if catch && len(t.Former) > 0 {
			b.altered[t.OID] = t
		}
	}
	all, err := catalog.List(ctx, conn)
	if err != nil {
		return nil, target.Fault(err)
	}
	known := slices.DeleteFunc(all, func(t *catalog.Table) bool { return b.captured[t.Name] != t.OID })
	if err := catalog.Describe(ctx, conn, known); err != nil {
		return nil, target.Fault(err)
	}
	var oids []uint32
	for _, t := range known {
		b.tables[t.OID] = t
		for _, c := range t.Columns {
			oids = append(oids, c.TypeOID)
		}
	}
	slices.Sort(oids)
	if b.types, err = catalog.Types(ctx, conn, slices.Compact(oids)); err != nil {
		return nil, target.Fault(err)
	}
	return b, nil
}

// allBinary reports whether every column of every captured table has a binary form we know.
func (b *book) allBinary() bool {
	for _, t := range b.tables {
		for _, c := range t.Columns {
			if codec, ok := catalog.CodecOf(b.types, c.TypeOID, c.Modifier, c.Dimensions); !ok || !b.veil.binary(t.Name, c.Name, codec) {
				return false
			}
		}
	}
	return true
}

// describe explains a Relation message by the catalog as it is now, which is not before the transaction that the message is
// of.
func (b *book) describe(ctx context.Context, conn *pgx.Conn, message []byte, xid uint32) (*described, error) {
	r, err := pgoutput.ParseRelation(message)
	if err != nil {
		return nil, fault.Wrap(err, fault.PGDecode, b.where, err.Error())
	}
	name := pgrepl.TableName{Schema: r.Schema, Name: r.Name}
	if d := b.judge(r, name); d != nil {
		if oid, wanted := b.captured[name]; wanted && oid != r.OID {
			return b.former(ctx, conn, d, oid, name, xid)
		}
		return d, nil
	}
	// A table is described when something of it may have changed, which its names need not show.
	now, err := b.behind(ctx, conn, r.OID, name, xid)
	if err != nil {
		return nil, err
	}
	if now != nil {
		b.tables[r.OID] = now
	}
	t := b.altered[r.OID]
	columns := r.Columns
	if t != nil {
		columns = slices.Concat(columns, t.Sends)
	}
	if err := b.learn(ctx, conn, columns); err != nil {
		return nil, err
	}
	d := b.veil.describe(r, now, b.types, b.where)
	if t != nil {
		d = t.onto(d, b.final, now, b.types, b.target)
	}
	if b.binary && d.err == nil && !d.binary() {
		return nil, errAsText
	}
	return d, nil
}

// former settles a relation that has the name of a captured table and is another one. When the captured one still has its
// name, it is the one that took the place of the other, and nothing of the other counts.
func (b *book) former(
	ctx context.Context, conn *pgx.Conn, d *described, captured uint32, name pgrepl.TableName, xid uint32,
) (*described, error) {
	now, err := b.behind(ctx, conn, captured, name, xid)
	switch {
	case err != nil:
		return nil, err
	case now != nil && now.Name == name:
		return &described{relation: d.relation}, nil
	}
	return d, nil
}

// behind reads a table from a catalog that has what a transaction of the log has done to it.
func (b *book) behind(ctx context.Context, conn *pgx.Conn, oid uint32, name pgrepl.TableName, xid uint32) (*catalog.Table, error) {
	err := catalog.Settle(ctx, conn, xid)
	if err != nil {
		return nil, fmt.Errorf("wait until transaction %d is visible: %w", xid, err)
	}
	now, err := catalog.ByOID(ctx, conn, oid)
	if err != nil {
		return nil, fmt.Errorf("read table %s from the catalog: %w", name, err)
	}
	return now, nil
}

// judge settles the tables of which no row is read: those that are not captured, and those that are no longer what was
// captured. It returns nil for the others.
func (b *book) judge(r pgoutput.Relation, name pgrepl.TableName) *described {
	oid, wanted := b.captured[name]
	was, renamed := b.names[r.OID]
	changed := func(why string) *described {
		return &described{relation: r, captured: true, err: fault.New(fault.PGSchemaChanged, b.where, why)}
	}
	switch {
	case wanted && oid != r.OID:
		return &described{relation: r, captured: true, err: droppedAndMade(b.where, name)}
	case wanted:
		return nil
	case renamed:
		return changed(fmt.Sprintf("table %s was renamed to %s", was, name))
	}
	return &described{relation: r}
}

// reach notes the transactions that begin before a place in the present chunk of the log; at its end, the next chunk follows.
func (b *book) reach(c pgrepl.Chunk, to int) {
	if len(b.altered) == 0 {
		return
	}
	for b.read < to {
		at := b.read
		b.read += int(binary.BigEndian.Uint32(c.Data[at+1:])) + 1
		if c.Data[at+5] != 'w' {
			continue
		}
		body := c.Message(at)
		if len(body) == 0 || body[0] != pgoutput.KindBegin {
			continue
		}
		if m, err := pgoutput.ParseBegin(body); err == nil {
			b.final = m.Final
		}
	}
	if to == len(c.Data) {
		b.read = 0
	}
}

// learn reads the types of columns that are not known yet.
func (b *book) learn(ctx context.Context, conn *pgx.Conn, columns []pgoutput.RelationColumn) error {
	var oids []uint32
	for _, c := range columns {
		if _, ok := b.types[c.TypeOID]; !ok {
			oids = append(oids, c.TypeOID)
		}
	}
	if len(oids) == 0 {
		return nil
	}
	types, err := catalog.Types(ctx, conn, oids)
	if err != nil {
		return err
	}
	maps.Copy(b.types, types)
	return nil
}
