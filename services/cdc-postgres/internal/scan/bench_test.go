package scan

import (
	"encoding/binary"
	"math"
	"testing"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// BenchmarkPut decodes the tuples of a chunk of ten columns into batches and encodes these, as a reader of a copy does.
func BenchmarkPut(b *testing.B) {
	const batch = 2048
	types := []struct {
		oid      uint32
		modifier int32
	}{{20, -1}, {23, -1}, {20, -1}, {1700, 12<<16 + 2 + 4}, {701, -1}, {16, -1}, {1184, -1}, {25, -1}, {25, -1}, {1082, -1}}
	codecs, columns := make([]pgcodec.Codec, len(types)), make([]rows.Column, len(types))
	for i, t := range types {
		codecs[i] = pgcodec.ForOID(t.oid, t.modifier, "")
		columns[i] = rows.Column{Name: string(rune('a' + i)), Type: codecs[i].Type(), Source: codecs[i].SourceType(), Nullable: i > 0, ID: i + 1}
	}
	columns[0].KeyPos = 1
	schema, err := rows.NewSchema("public.t", 1, "postgres", columns)
	if err != nil {
		b.Fatal(err)
	}
	var data []byte
	for i := range uint64(batch) {
		note := []byte("a note of about forty letters, number 123")
		if i%4 == 0 {
			note = nil
		}
		data = AppendTuple(data, [][]byte{
			binary.BigEndian.AppendUint64(nil, i),
			binary.BigEndian.AppendUint32(nil, uint32(i%10007)),
			binary.BigEndian.AppendUint64(nil, i*7919),
			{0, 2, 0, 0, 0, 0, 0, 2, 0x04, 0xd2, 0x15, 0xe0}, // 1234.56
			binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(i)/7)),
			{byte(i & 1)},
			binary.BigEndian.AppendUint64(nil, 820_454_400_000_000+i),
			[]byte("customer number 1234"),
			note,
			binary.BigEndian.AppendUint32(nil, uint32(9496+i%365)),
		})
	}
	builder := rows.NewBuilder(schema)
	plan, err := Bind(builder, codecs)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.SetBytes(int64(len(data) / batch))
	b.ReportAllocs()
	for n := 0; n < b.N; n += batch {
		rest := data
		for i := range uint64(batch) {
			if rest, err = plan.Put(rest); err != nil {
				b.Fatal(err)
			}
			builder.EndRow(rows.Meta{Op: rows.OpRead, Seq: i, Ts: rows.NoTs, Txn: 7, Ord: uint32(i)})
		}
		full, err := builder.Flush()
		if err != nil {
			b.Fatal(err)
		}
		if buf, err = full.Encode(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
