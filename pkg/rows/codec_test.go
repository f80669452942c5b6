package rows_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"pgregory.net/rapid"

	"weir.dev/weir/pkg/rows"
)

// putAny appends a random value or null of type typ.
func putAny(t *rapid.T, b array.Builder, typ rows.Type) {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		b.AppendNull()
		return
	}
	i64 := func() int64 { return rapid.Int64().Draw(t, "int") }
	text := func() string { return rapid.StringN(0, 6, 24).Draw(t, "text") }
	switch b := b.(type) {
	case *array.Decimal256Builder:
		v := decimal256.FromI64(i64()).Mul(decimal256.FromU64(uint64(i64())))
		if typ.Precision >= 60 && rapid.Bool().Draw(t, "wide") {
			v = v.Mul(decimal256.FromU64(math.MaxUint64))
		}
		b.Append(v)
	case *array.ListBuilder:
		b.Append(true)
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			putAny(t, b.ValueBuilder(), typ.ElemType())
		}
	case *array.StringBuilder:
		switch typ.Kind {
		case rows.KindDecimalText:
			b.Append(fmt.Sprintf("%d.%03d", i64(), rapid.IntRange(0, 999).Draw(t, "fraction")))
		case rows.KindJSON:
			doc, _ := json.MarshalIndent(map[string]string{"k": text()}, "", " ")
			b.Append(string(doc))
		default:
			b.Append(text())
		}
	case *array.BinaryBuilder:
		b.Append([]byte(text()))
	case *array.FixedSizeBinaryBuilder:
		b.Append(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
	case *array.Float32Builder:
		b.Append(rapid.Float32().Draw(t, "float"))
	case *array.Float64Builder:
		b.Append(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(-1), 1e-7, 1e22, 0.1}).Draw(t, "float"))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(i64()))
	default:
		v := i64()
		for _, as := range []any{
			v&1 == 0, int8(v), int16(v), int32(v), v, uint8(v), uint16(v), uint32(v), uint64(v),
			arrow.Date32(v), arrow.Time64(uint64(v) % 86_400_000_000), arrow.Duration(v), arrow.Timestamp(v),
		} {
			if fits(b, as) {
				put(b, as)
				return
			}
		}
		t.Fatalf("no value for %v", typ)
	}
}

func fits(b array.Builder, v any) bool {
	switch v.(type) {
	case bool:
		_, ok := b.(*array.BooleanBuilder)
		return ok
	case int8:
		_, ok := b.(*array.Int8Builder)
		return ok
	case int16:
		_, ok := b.(*array.Int16Builder)
		return ok
	case int32:
		_, ok := b.(*array.Int32Builder)
		return ok
	case int64:
		_, ok := b.(*array.Int64Builder)
		return ok
	case uint8:
		_, ok := b.(*array.Uint8Builder)
		return ok
	case uint16:
		_, ok := b.(*array.Uint16Builder)
		return ok
	case uint32:
		_, ok := b.(*array.Uint32Builder)
		return ok
	case uint64:
		_, ok := b.(*array.Uint64Builder)
		return ok
	case arrow.Date32:
		_, ok := b.(*array.Date32Builder)
		return ok
	case arrow.Time64:
		_, ok := b.(*array.Time64Builder)
		return ok
	case arrow.Duration:
		_, ok := b.(*array.DurationBuilder)
		return ok
	case arrow.Timestamp:
		_, ok := b.(*array.TimestampBuilder)
		return ok
	}
	return false
}

// For every type: what is gathered, copied, sliced or sent over the wire is the same cell in all its forms.
func TestCodecsAgree(t *testing.T) {
	for _, typ := range everyType() {
		t.Run(typ.String(), func(t *testing.T) {
			s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "v", Type: typ, KeyPos: 1}})
			if err != nil {
				t.Fatal(err)
			}
			codec := s.Codec(0)
			if codec.Type() != typ {
				t.Fatalf("codec of %v", codec.Type())
			}
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.IntRange(1, 12).Draw(rt, "rows")
				b, copied := rows.NewBuilder(s), rows.NewBuilder(s)
				for range n {
					putAny(rt, b.Column(0), typ)
					b.EndRow(rows.Meta{Op: rows.OpInsert})
				}
				in, err := b.Flush()
				if err != nil {
					rt.Fatal(err)
				}
				idx := rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 1, 20).Draw(rt, "idx")
				from := rapid.IntRange(0, n-1).Draw(rt, "from")
				gathered := in.Gather(idx)
				sliced := in.Slice(from, n)
				var at []int32
				for i := range n - from {
					at = append(at, int32(i))
				}
				again := sliced.Gather(at)
				for i := range n {
					codec.Copy(copied.Column(0), in.Column(0), i)
					copied.EndRow(in.Meta(i))
				}
				copy, err := copied.Flush()
				if err != nil {
					rt.Fatal(err)
				}
				msg, err := sliced.Encode(nil)
				if err != nil {
					rt.Fatal(err)
				}
				var d rows.Decoder
				wired, err := d.Decode(msg)
				if err != nil {
					rt.Fatal(err)
				}
				for to, i := range idx {
					sameCell(rt, codec, in, int(i), gathered, to)
				}
				for i := range n {
					sameCell(rt, codec, in, i, copy, i)
				}
				for i := range n - from {
					sameCell(rt, codec, in, from+i, sliced, i)
					sameCell(rt, codec, in, from+i, again, i)
					sameCell(rt, codec, in, from+i, wired, i)
				}
				for i := range n {
					if line := in.AppendRowJSON(nil, i); !json.Valid(line) {
						rt.Fatalf("not JSON: %s", line)
					}
				}
			})
		})
	}
}

func sameCell(t *rapid.T, c rows.Codec, a *rows.Batch, i int, b *rows.Batch, j int) {
	x, y := a.Column(0), b.Column(0)
	if !c.Equal(x, i, y, j) {
		t.Fatalf("cell %d and its copy %d differ: %q and %q", i, j, c.AppendText(nil, x, i), c.AppendText(nil, y, j))
	}
	for _, form := range []func([]byte, arrow.Array, int) []byte{c.AppendCanonical, c.AppendText, c.AppendJSON} {
		if p, q := string(form(nil, x, i)), string(form(nil, y, j)); p != q {
			t.Fatalf("cell %d and its copy %d: %q and %q", i, j, p, q)
		}
	}
}

func TestEqualTellsValuesApart(t *testing.T) {
	for name, pair := range map[string][2]keyCase{
		"zeros":         {one(rows.KindFloat64, 0.0), one(rows.KindFloat64, math.Copysign(0, -1))},
		"null":          {one(rows.KindText, nil), one(rows.KindText, "")},
		"decimal zeros": {one(rows.KindDecimalText, "1.0"), one(rows.KindDecimalText, "1.00")},
		"bytes":         {one(rows.KindBytes, []byte("a")), one(rows.KindBytes, []byte("b"))},
	} {
		s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "v", Type: pair[0].types[0]}})
		if err != nil {
			t.Fatal(err)
		}
		b := rows.NewBuilder(s)
		for _, k := range pair {
			if k.values[0] == nil {
				b.Null(0)
			} else {
				put(b.Column(0), k.values[0])
			}
			b.EndRow(rows.Meta{Op: rows.OpInsert})
		}
		in, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		if s.Codec(0).Equal(in.Column(0), 0, in.Column(0), 1) {
			t.Errorf("%s: two values are one", name)
		}
	}
}

func TestCivil(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		days := rapid.Int64Range(-800_000, 4_000_000).Draw(rt, "days")
		want := time.Unix(days*86_400, 0).UTC()
		y, m, d := rows.Civil(days)
		if int(y) != want.Year() || m != int(want.Month()) || d != want.Day() {
			rt.Fatalf("day %d is %d-%d-%d, want %v", days, y, m, d, want)
		}
		if back := rows.DaysOf(y, m, d); back != days {
			rt.Fatalf("day %d came back as %d", days, back)
		}
	})
}

func TestTextForms(t *testing.T) {
	for want, k := range map[string]keyCase{
		"1970-01-01":                 one(rows.KindDate, arrow.Date32(0)),
		"0001-12-31 BC":              one(rows.KindDate, arrow.Date32(-719163)),
		"10000-01-01":                one(rows.KindDate, arrow.Date32(2932897)),
		"23:59:59.999999":            one(rows.KindTime, arrow.Time64(86_399_999_999)),
		"-838:59:59.5":               one(rows.KindDuration, arrow.Duration(-(838*3600+59*60+59)*1_000_000-500_000)),
		"-00:00:00.000001":           one(rows.KindDuration, arrow.Duration(-1)),
		"1969-12-31 23:59:59.9":      one(rows.KindTimestamp, arrow.Timestamp(-100_000)),
		"1970-01-01 00:00:00.05+00":  one(rows.KindTimestampTZ, arrow.Timestamp(50_000)),
		`\x00ff`:                     one(rows.KindBytes, []byte{0, 255}),
		"18446744073709551615":       one(rows.KindUint64, uint64(math.MaxUint64)),
		"-0":                         one(rows.KindFloat64, math.Copysign(0, -1)),
		"1e+15":                      one(rows.KindFloat64, 1e15),
		"-Infinity":                  one(rows.KindFloat32, float32(math.Inf(-1))),
		"-0.07":                      {[]rows.Type{rows.Decimal(10, 2)}, []any{decimal128.FromI64(-7)}},
		"12345678901234567890123.45": {[]rows.Type{rows.Decimal(38, 2)}, []any{decimal128.New(66926, 1757384250117996873)}},
	} {
		s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "v", Type: k.types[0]}})
		if err != nil {
			t.Fatal(err)
		}
		b := rows.NewBuilder(s)
		put(b.Column(0), k.values[0])
		b.EndRow(rows.Meta{Op: rows.OpInsert})
		in, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		got := string(s.Codec(0).AppendText(nil, in.Column(0), 0))
		if typ := k.types[0]; typ.Kind == rows.KindDecimal && typ.Precision == 38 {
			want = k.values[0].(decimal128.Num).ToString(2) // Arrow's own conversion is the oracle
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The text of an array is what array_out writes.
func TestListText(t *testing.T) {
	s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "v", Type: rows.List(rows.Of(rows.KindText))}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	l := b.Column(0).(*array.ListBuilder)
	l.Append(true)
	items := l.ValueBuilder().(*array.StringBuilder)
	for _, v := range []string{`a "b" \c`, "NULL", "nULl", "NULLs", "", "plain", "a,b", "{", "}", "\t", "ä\u00a0ö", `"`, `\`, "a b"} {
		items.Append(v)
	}
	items.AppendNull()
	b.EndRow(rows.Meta{Op: rows.OpInsert})
	l.Append(true) // no items
	b.EndRow(rows.Meta{Op: rows.OpInsert})
	in, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a \"b\" \\c","NULL","nULl",NULLs,"",plain,"a,b","{","}","` + "\t" + `",` + "ä\u00a0ö" + `,"\"","\\","a b",NULL}`
	if got, _ := in.AppendText(nil, 0, 0); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, _ := in.AppendText(nil, 0, 1); string(got) != "{}" {
		t.Errorf("empty list is %s", got)
	}
	if got := string(in.Slice(1, 2).AppendColumnsJSON(nil, 0)); got != `{"v":[]}` {
		t.Errorf("got %s", got)
	}
	if got := string(in.AppendColumnsJSON(nil, 0)); !strings.HasPrefix(got, `{"v":["a \"b\" \\c","NULL",`) || !strings.HasSuffix(got, `,"a b",null]}`) {
		t.Errorf("got %s", got)
	}
}

// A batch must end when its lists have become large, however few rows they are in.
func TestBuilderSizesLists(t *testing.T) {
	s, err := rows.NewSchema("t", 1, "", []rows.Column{
		{Name: "texts", Type: rows.List(rows.Of(rows.KindText))}, {Name: "ints", Type: rows.List(rows.Of(rows.KindInt64))},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	texts, ints := b.Column(0).(*array.ListBuilder), b.Column(1).(*array.ListBuilder)
	texts.Append(true)
	texts.ValueBuilder().(*array.StringBuilder).Append(strings.Repeat("x", 100_000))
	ints.Append(true)
	for i := range 1000 {
		ints.ValueBuilder().(*array.Int64Builder).Append(int64(i))
	}
	b.EndRow(rows.Meta{Op: rows.OpInsert})
	if n := b.Bytes(); n < 108_000 || n > 109_000 {
		t.Errorf("estimated %d bytes", n)
	}
}
