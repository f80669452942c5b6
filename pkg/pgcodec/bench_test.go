package pgcodec_test

import (
	"testing"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// The table of the benchmarks: ten columns of mixed types, about 120 bytes of text.
var mixed = []struct {
	name   string
	oid    uint32
	typmod int32
	text   string
}{
	{"id", 20, -1, "1234567890"},
	{"customer", 23, -1, "42317"},
	{"state", 21, -1, "7"},
	{"paid", 16, -1, "t"},
	{"total", 1700, (10<<16 | 2) + 4, "12345.67"},
	{"weight", 701, -1, "2.71828"},
	{"name", 25, -1, "a customer of the shop"},
	{"created", 1184, -1, "2026-11-29 13:38:19.123456+00"},
	{"day", 1082, -1, "2026-11-29"},
	{"ref", 2950, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
}

func mixedSchema(t testing.TB) *rows.Schema {
	t.Helper()
	var columns []rows.Column
	for i, m := range mixed {
		c := pgcodec.ForOID(m.oid, m.typmod, "")
		col := rows.Column{Name: m.name, Type: c.Type(), Source: c.SourceType(), Nullable: i > 0}
		if i == 0 {
			col.KeyPos = 1
		}
		columns = append(columns, col)
	}
	s, err := rows.NewSchema("public.orders", 1, pgcodec.Origin, columns)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mixedRow binds the decoders and gives the cells of one row in form f.
func mixedRow(t testing.TB, b *rows.Builder, f pgcodec.Format) ([]pgcodec.Decoder, [][]byte) {
	t.Helper()
	decoders, cells := make([]pgcodec.Decoder, len(mixed)), make([][]byte, len(mixed))
	for i, m := range mixed {
		c := pgcodec.ForOID(m.oid, m.typmod, "")
		cells[i] = []byte(m.text)
		if f == pgcodec.Binary {
			one, err := decode(t, c, pgcodec.Text, cells[i])
			if err != nil {
				t.Fatal(err)
			}
			field, err := pgcodec.BindField(one, 0)(nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			cells[i] = field[4:]
		}
		var err error
		if decoders[i], err = c.Decoder(b, i, f); err != nil {
			t.Fatal(err)
		}
	}
	return decoders, cells
}

// BenchmarkBuild is one row of ten columns from cells to builder, flushes of 1,000 rows included.
func BenchmarkBuild(b *testing.B) {
	for name, f := range map[string]pgcodec.Format{"text": pgcodec.Text, "binary": pgcodec.Binary} {
		b.Run(name, func(b *testing.B) {
			builder := rows.NewBuilder(mixedSchema(b))
			decoders, cells := mixedRow(b, builder, f)
			var seq uint64
			b.ReportAllocs()
			for b.Loop() {
				seq++
				for i, d := range decoders {
					if err := d(cells[i]); err != nil {
						b.Fatal(err)
					}
				}
				builder.EndRow(rows.Meta{Op: rows.OpInsert, Seq: seq, Ts: int64(seq)})
				if builder.Rows() == 1000 {
					if _, err := builder.Flush(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func mixedBatch(b *testing.B, n int) *rows.Batch {
	b.Helper()
	builder := rows.NewBuilder(mixedSchema(b))
	decoders, cells := mixedRow(b, builder, pgcodec.Text)
	for range n {
		for i, d := range decoders {
			if err := d(cells[i]); err != nil {
				b.Fatal(err)
			}
		}
		builder.EndRow(rows.Meta{Op: rows.OpInsert})
	}
	out, err := builder.Flush()
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// BenchmarkCopy is one row of ten columns from a batch to a binary COPY stream.
func BenchmarkCopy(b *testing.B) {
	batch := mixedBatch(b, 1000)
	fields := make([]pgcodec.Field, batch.Schema().NumColumns())
	for i := range fields {
		fields[i] = pgcodec.BindField(batch, i)
	}
	var out []byte
	row := 0
	b.ReportAllocs()
	for b.Loop() {
		if row == 1000 {
			row, out = 0, out[:0]
		}
		out = pgcodec.AppendTuple(out, len(fields))
		for _, f := range fields {
			var err error
			if out, err = f(out, row); err != nil {
				b.Fatal(err)
			}
		}
		row++
	}
}

// BenchmarkEncode and BenchmarkDecode are per batch; divide by the rows in the name.
func BenchmarkEncode(b *testing.B) {
	for name, n := range sizes {
		b.Run(name, func(b *testing.B) {
			batch := mixedBatch(b, n)
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if out, err = batch.Encode(out[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, n := range sizes {
		b.Run(name, func(b *testing.B) {
			msg, err := mixedBatch(b, n).Encode(nil)
			if err != nil {
				b.Fatal(err)
			}
			var d rows.Decoder
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(msg); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

var sizes = map[string]int{"1row": 1, "100rows": 100, "1000rows": 1000}

// BenchmarkArray is one array of four elements from a cell to the builder.
func BenchmarkArray(b *testing.B) {
	for name, c := range map[string]struct {
		oid  uint32
		text string
	}{
		"integers": {1007, "{1,22,NULL,4444}"},
		"texts":    {1009, `{plain,"two words",NULL,"a \"quote\""}`},
	} {
		b.Run(name, func(b *testing.B) {
			codec := pgcodec.ForOID(c.oid, -1, "")
			s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "v", Type: codec.Type()}})
			if err != nil {
				b.Fatal(err)
			}
			builder := rows.NewBuilder(s)
			put, err := codec.Decoder(builder, 0, pgcodec.Text)
			if err != nil {
				b.Fatal(err)
			}
			cell := []byte(c.text)
			b.ReportAllocs()
			for b.Loop() {
				if err := put(cell); err != nil {
					b.Fatal(err)
				}
				builder.EndRow(rows.Meta{Op: rows.OpRead})
				if builder.Rows() == 1000 {
					if _, err := builder.Flush(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
