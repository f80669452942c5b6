package cdcmysql

import (
	"testing"

	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// BenchmarkPut is a row of the benchmark's table (itest/bench) on its way from a chunk in memory into a batch that is encoded.
func BenchmarkPut(b *testing.B) {
	d := &described{name: core.Name{Schema: "bench", Table: "wide"}}
	for _, c := range []struct {
		name string
		mycodec.CatalogColumn
	}{
		{"id", mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint"}},
		{"customer", mycodec.CatalogColumn{DataType: "int", ColumnType: "int"}},
		{"account", mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint"}},
		{"amount", mycodec.CatalogColumn{DataType: "decimal", ColumnType: "decimal(12,2)", Precision: 12, Scale: 2}},
		{"ratio", mycodec.CatalogColumn{DataType: "double", ColumnType: "double"}},
		{"active", mycodec.CatalogColumn{DataType: "tinyint", ColumnType: "tinyint(1)"}},
		{"placed", mycodec.CatalogColumn{DataType: "timestamp", ColumnType: "timestamp"}},
		{"name", mycodec.CatalogColumn{DataType: "varchar", ColumnType: "varchar(100)", OctetLength: 400, Charset: "utf8mb4"}},
		{"note", mycodec.CatalogColumn{DataType: "text", ColumnType: "text", OctetLength: 65535, Charset: "utf8mb4"}},
		{"due", mycodec.CatalogColumn{DataType: "date", ColumnType: "date"}},
	} {
		codec, err := mycodec.OfCatalog(c.CatalogColumn)
		if err != nil {
			b.Fatal(err)
		}
		d.add(c.name, true, codec)
	}
	t, err := (&opened{}).bind(d, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	const many = 8192
	c := &copied{}
	for range many {
		c.data = appendRow(c.data, [][]byte{
			[]byte("1234567"), []byte("4321"), []byte("9776535873"), []byte("2345.67"), []byte("176366.71428571429"), []byte("1"),
			[]byte("2026-01-15 06:56:07"), []byte("customer number 4321"), []byte("a note of about forty letters, number 1234567"), []byte("2026-05-03"),
		})
	}
	whole, cells := c.data, make([][]byte, len(d.columns))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%many == 0 {
			c.data = whole
		}
		c.next(cells)
		if err := t.put(cells, t.text); err != nil {
			b.Fatal(err)
		}
		t.EndRow(rows.Meta{Op: rows.OpRead, Seq: 1, Ts: rows.NoTs})
		if n%many == many-1 {
			if _, err := t.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
