package cdcpostgres

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
)

type counter struct{ rows int }

func (c *counter) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	c.rows += b.NumRows()
	return nil
}
func (*counter) Tell(context.Context, []byte) error { return nil }

// BenchmarkApply turns received messages into batches: ten columns in binary form, transactions of 1,000 rows.
func BenchmarkApply(b *testing.B) {
	const oid, rowsPerChunk = 1, 1000
	columns := []pgoutput.RelationColumn{
		{Key: true, Name: "id", TypeOID: 20, Modifier: -1},
		{Name: "n", TypeOID: 23, Modifier: -1},
		{Name: "big", TypeOID: 20, Modifier: -1},
		{Name: "amount", TypeOID: 1700, Modifier: 12<<16 + 2 + 4},
		{Name: "name", TypeOID: 25, Modifier: -1},
		{Name: "note", TypeOID: 25, Modifier: -1},
		{Name: "at", TypeOID: 1184, Modifier: -1},
		{Name: "ok", TypeOID: 16, Modifier: -1},
		{Name: "u", TypeOID: 2950, Modifier: -1},
		{Name: "d", TypeOID: 701, Modifier: -1},
	}
	d := describe(pgoutput.Relation{OID: oid, Schema: "public", Name: "t", Identity: pgoutput.IdentityDefault, Columns: columns}, nil, plain, "")
	cell := func(m []byte, v ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(append(m, 'b'), uint32(len(v))), v...)
	}
	var w wire
	w.begin(100, 7)
	for i := range uint64(rowsPerChunk) {
		m := binary.BigEndian.AppendUint16([]byte{'N'}, uint16(len(columns)))
		m = cell(m, binary.BigEndian.AppendUint64(nil, i)...)
		m = cell(m, binary.BigEndian.AppendUint32(nil, uint32(i))...)
		m = cell(m, binary.BigEndian.AppendUint64(nil, i*7919)...)
		m = cell(m, 0, 2, 0, 0, 0, 0, 0, 2, 0x04, 0xd2, 0x15, 0xe0) // 1234.56
		m = cell(m, []byte("customer 123456")...)
		m = cell(m, []byte("c4ca4238a0b923820dcc509a6f75849b")...)
		m = cell(m, binary.BigEndian.AppendUint64(nil, 820_454_400_000_000+i)...)
		m = cell(m, byte(i&1))
		m = cell(m, []byte("0123456789abcdef")...)
		m = cell(m, binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(i)/7))...)
		w.row(pgoutput.KindInsert, oid, m)
	}
	w.commit(100, 110)
	r := newTestReader(b, core.Position{End: 50}, source.Config{})
	head := (&wire{}).table(d)
	var out counter
	feed := func(it item) {
		if err := r.link.queue.Push(b.Context(), it, it.size()); err != nil {
			b.Fatal(err)
		}
		for more := true; more; {
			if err := r.chunk(b.Context(), &out, nil); err != nil {
				b.Fatal(err)
			}
			var err error
			if more, err = r.next(); err != nil {
				b.Fatal(err)
			}
		}
	}
	feed(head.item())
	b.SetBytes(int64(len(w.b) / rowsPerChunk))
	b.ReportAllocs()
	for n := 0; n < b.N; n += rowsPerChunk {
		r.tracker = core.NewTracker(core.Position{End: 50})
		feed(w.item())
	}
}
