package mytypes

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
)

// sameAsSelect holds the rows that came by the log against what the codecs make of a SELECT. It knows the columns from the
// catalog alone, as a copy does.
func (w *world) sameAsSelect(t *testing.T, f family, have content) {
	t.Helper()
	conn := connect(t, w.source)
	settings := mycodec.Settings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		execute(t, conn, "SET SESSION "+name+" = "+settings[name])
	}
	described, err := conn.Execute("SELECT column_name, data_type, column_type, character_octet_length, numeric_precision, numeric_scale, datetime_precision, " +
		"character_set_name FROM information_schema.columns WHERE table_schema = 'm' AND table_name = '" + f.name + "' ORDER BY ordinal_position")
	if err != nil {
		t.Fatal(err)
	}
	var codecs []mycodec.Codec
	var columns []rows.Column
	list := ""
	for _, d := range described.Values {
		c, err := mycodec.OfCatalog(mycodec.CatalogColumn{
			DataType: string(d[1].AsString()), ColumnType: string(d[2].AsString()), OctetLength: d[3].AsUint64(), Precision: int(d[4].AsUint64()),
			Scale: int(d[5].AsUint64()), Fraction: int(d[6].AsUint64()), Charset: string(d[7].AsString()),
		})
		if err != nil {
			t.Fatal(err)
		}
		name := string(d[0].AsString())
		if codecs != nil {
			list += ", "
		}
		list += c.Expr("`" + name + "`")
		codecs = append(codecs, c)
		columns = append(columns, rows.Column{Name: name, Type: c.Type(), Source: c.SourceType(), Nullable: true})
	}
	b, decoders := bound(t, columns, codecs)
	found, err := conn.Execute(fmt.Sprintf("SELECT %s FROM %s WHERE id <= %d ORDER BY id", list, f.table(), again))
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range found.RowDatas {
		row, err := data.ParseText(found.Fields, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range row {
			switch cell := v.Value().(type) {
			case nil:
				b.Null(i)
			case []byte:
				err = decoders[i](cell)
			default:
				err = decoders[i](fmt.Append(nil, cell))
			}
			if err != nil {
				t.Fatalf("%s.%s: %v", f.table(), columns[i].Name, err)
			}
		}
		b.EndRow(rows.Meta{Op: rows.OpRead, Ts: rows.NoTs})
	}
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	want := content{rows: make(map[rowKey]map[string]string)}
	for i := range batch.NumRows() {
		want.put(t, "read", parseLine(t, batch.AppendRowJSON(nil, i)).values())
	}
	for id := 1; id <= f.size(); id++ {
		got, want := have.rows[rowKey{"insert", id + again}], want.rows[rowKey{"read", id}]
		for i, c := range f.columns {
			if name := fmt.Sprintf("c%d", i+1); got[name] != want[name] || want[name] == "" {
				t.Errorf("%s %s, row %d:\n by the log %.300s\n by SELECT  %.300s", f.name, c.sqlType, id, got[name], want[name])
			}
		}
	}
}

// bound makes a builder of columns and what reads their text into it.
func bound(tb testing.TB, columns []rows.Column, codecs []mycodec.Codec) (*rows.Builder, []mycodec.Decoder) {
	tb.Helper()
	schema, err := rows.NewSchema("m.t", 1, mycodec.Origin, columns)
	if err != nil {
		tb.Fatal(err)
	}
	b := rows.NewBuilder(schema)
	decoders := make([]mycodec.Decoder, len(codecs))
	for i, c := range codecs {
		if decoders[i], err = c.Decoder(b, i, mycodec.Text); err != nil {
			tb.Fatal(err)
		}
	}
	return b, decoders
}
