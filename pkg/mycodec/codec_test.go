package mycodec_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
)

// read gives cells of one column to its decoder and returns the texts they have; special ones are in brackets.
func read(t testing.TB, c mycodec.Codec, f mycodec.Format, cells ...string) []string {
	t.Helper()
	s, err := rows.NewSchema("d.t", 1, mycodec.Origin, []rows.Column{{Name: "c", Type: c.Type(), Source: c.SourceType()}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	decode, err := c.Decoder(b, 0, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range cells {
		if err := decode([]byte(cell)); err != nil {
			t.Fatalf("%s: cell %x: %v", c.SourceType(), cell, err)
		}
		b.EndRow(rows.Meta{Op: rows.OpInsert})
	}
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(cells))
	for i := range cells {
		text, _ := batch.AppendText(nil, 0, i)
		texts[i] = string(text)
		if special, ok := batch.SpecialText(0, i); ok {
			texts[i] = "[" + special + "]"
		}
	}
	return texts
}

func unhex(t testing.TB, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The cells are what a server wrote; testdata of other tools is not used.
func TestLogAndTextAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		log            mycodec.LogColumn
		catalog        mycodec.CatalogColumn
		cell, text     string // of the log in hexadecimal, of a SELECT
		want, sqlWords string
	}{
		{mycodec.LogColumn{Type: 1}, mycodec.CatalogColumn{DataType: "tinyint", ColumnType: "tinyint"}, "80", "-128", "-128", "tinyint"},
		{mycodec.LogColumn{Type: 9, Unsigned: true}, mycodec.CatalogColumn{DataType: "mediumint", ColumnType: "mediumint unsigned"}, "ffffff", "16777215", "16777215", "mediumint unsigned"},
		{mycodec.LogColumn{Type: 9}, mycodec.CatalogColumn{DataType: "mediumint", ColumnType: "mediumint"}, "000080", "-8388608", "-8388608", "mediumint"},
		{mycodec.LogColumn{Type: 8, Unsigned: true}, mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint unsigned"}, "ffffffffffffffff", "18446744073709551615", "18446744073709551615", "bigint unsigned"},
		{mycodec.LogColumn{Type: 246, Meta: 10<<8 | 2}, mycodec.CatalogColumn{DataType: "decimal", ColumnType: "decimal(10,2)", Precision: 10, Scale: 2}, "7ffffffffe", "-0.01", "-0.01", "decimal(10,2)"},
		{mycodec.LogColumn{Type: 16, Meta: 1<<8 | 4}, mycodec.CatalogColumn{DataType: "bit", ColumnType: "bit(12)", Precision: 12}, "0a01", "\x0a\x01", `\x0a01`, "bit(12)"},
		{mycodec.LogColumn{Type: 13}, mycodec.CatalogColumn{DataType: "year", ColumnType: "year"}, "00", "0000", "0", "year"},
		{mycodec.LogColumn{Type: 13}, mycodec.CatalogColumn{DataType: "year", ColumnType: "year"}, "ff", "2155", "2155", "year"},
		{mycodec.LogColumn{Type: 10}, mycodec.CatalogColumn{DataType: "date", ColumnType: "date"}, "000000", "0000-00-00", "[0000-00-00]", "date"},
		{mycodec.LogColumn{Type: 19}, mycodec.CatalogColumn{DataType: "time", ColumnType: "time"}, "7fffff", "-00:00:01", "-00:00:01", "time"},
		{mycodec.LogColumn{Type: 19, Meta: 6}, mycodec.CatalogColumn{DataType: "time", ColumnType: "time(6)", Fraction: 6}, "7fffffffffff", "-00:00:00.000001", "-00:00:00.000001", "time(6)"},
		{mycodec.LogColumn{Type: 19, Meta: 2}, mycodec.CatalogColumn{DataType: "time", ColumnType: "time(2)", Fraction: 2}, "7fffffff", "-00:00:00.01", "-00:00:00.01", "time(2)"},
		{mycodec.LogColumn{Type: 17}, mycodec.CatalogColumn{DataType: "timestamp", ColumnType: "timestamp"}, "00000000", "0000-00-00 00:00:00", "[0000-00-00 00:00:00]", "timestamp"},
		{mycodec.LogColumn{Type: 17}, mycodec.CatalogColumn{DataType: "timestamp", ColumnType: "timestamp"}, "7fffffff", "2038-01-19 03:14:07", "2038-01-19 03:14:07+00", "timestamp"},
		{mycodec.LogColumn{Type: 15, Meta: 80, Charset: "utf8mb4"}, mycodec.CatalogColumn{DataType: "varchar", ColumnType: "varchar(20)", OctetLength: 80, Charset: "utf8mb4"}, "c3a4", "ä", "ä", "varchar(20)"},
		{mycodec.LogColumn{Type: 15, Meta: 20, Charset: "latin1"}, mycodec.CatalogColumn{DataType: "varchar", ColumnType: "varchar(20)", OctetLength: 20, Charset: "latin1"}, "e480", "\xe4\x80", "ä€", "varchar(20)"},
		{mycodec.LogColumn{Type: 254, Meta: 0xfe04, Charset: "binary"}, mycodec.CatalogColumn{DataType: "binary", ColumnType: "binary(4)", OctetLength: 4}, "01", "\x01\x00\x00\x00", `\x01000000`, "binary(4)"},
		{mycodec.LogColumn{Type: 254, Meta: 0xf701, Charset: "latin1", Labels: [][]byte{[]byte("a"), []byte("\xe9")}}, mycodec.CatalogColumn{DataType: "enum", ColumnType: "enum('a','é')", Charset: "latin1"}, "02", "2", "é", "enum('a','é')"},
		{mycodec.LogColumn{Type: 254, Meta: 0xf701, Charset: "latin1", Labels: [][]byte{[]byte("a")}}, mycodec.CatalogColumn{DataType: "enum", ColumnType: "enum('a')", Charset: "latin1"}, "00", "0", "", "enum('a')"},
		{mycodec.LogColumn{Type: 254, Meta: 0xf801, Charset: "utf8mb4", Labels: [][]byte{[]byte("x"), []byte("it's")}}, mycodec.CatalogColumn{DataType: "set", ColumnType: "set('x','it''s')", Charset: "utf8mb4"}, "03", "3", "x,it's", "set('x','it''s')"},
	} {
		fromLog, err := mycodec.OfLog(c.log)
		if err != nil {
			t.Fatalf("%s: %v", c.sqlWords, err)
		}
		fromCatalog, err := mycodec.OfCatalog(c.catalog)
		if err != nil {
			t.Fatalf("%s: %v", c.sqlWords, err)
		}
		if fromLog.Type() != fromCatalog.Type() || fromLog.SourceType() != c.sqlWords || fromCatalog.SourceType() != c.sqlWords || fromLog.Width() != fromCatalog.Width() {
			t.Errorf("%s: the log says %s as %v of width %d, the catalog %s as %v of width %d", c.sqlWords, fromLog.SourceType(), fromLog.Type(),
				fromLog.Width(), fromCatalog.SourceType(), fromCatalog.Type(), fromCatalog.Width())
		}
		cell := unhex(t, c.cell)
		if w := fromLog.Width(); w > 0 && w != len(cell) {
			t.Errorf("%s: width %d, the server writes %d", c.sqlWords, w, len(cell))
		}
		if got := read(t, fromLog, mycodec.Log, cell)[0]; got != c.want {
			t.Errorf("%s: logged %q, want %q", c.sqlWords, got, c.want)
		}
		if got := read(t, fromCatalog, mycodec.Text, c.text)[0]; got != c.want {
			t.Errorf("%s: selected %q, want %q", c.sqlWords, got, c.want)
		}
		a, err1 := fromLog.Key(nil, []byte(cell), mycodec.Log)
		b, err2 := fromCatalog.Key(nil, []byte(c.text), mycodec.Text)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: keys %x (%v) and %x (%v)", c.sqlWords, a, err1, b, err2)
		}
	}
}

func TestUnknownTypesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []mycodec.LogColumn{
		{Type: 20}, {Type: 15, Charset: "klingon"}, {Type: 252, Meta: 9, Charset: "binary"}, {Type: 246, Meta: 70<<8 | 2}, {Type: 19, Meta: 7},
	} {
		if _, err := mycodec.OfLog(c); !errors.Is(err, mycodec.ErrUnknown) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []mycodec.CatalogColumn{
		{DataType: "multipoly", ColumnType: "multipoly"},
		{DataType: "text", ColumnType: "text /*M!100301 COMPRESSED*/", Charset: "latin1"},
		{DataType: "enum", ColumnType: "enum('a'"},
	} {
		if _, err := mycodec.OfCatalog(c); !errors.Is(err, mycodec.ErrUnknown) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// pack writes a decimal as the log does: the inverse of the decoder, digit by digit.
func pack(digits string, precision, scale int, negative bool) string {
	whole := precision - scale
	sizes := []int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}
	var out []byte
	put := func(group string) {
		v := 0
		for _, d := range group {
			v = v*10 + int(d-'0')
		}
		for i := sizes[len(group)] - 1; i >= 0; i-- {
			out = append(out, byte(v>>(8*i)))
		}
	}
	head, tail := digits[:whole], digits[whole:]
	if n := len(head) % 9; n > 0 {
		put(head[:n])
		head = head[n:]
	}
	for ; head != ""; head = head[9:] {
		put(head[:9])
	}
	for ; len(tail) >= 9; tail = tail[9:] {
		put(tail[:9])
	}
	if tail != "" {
		put(tail)
	}
	out[0] ^= 0x80
	if negative {
		for i := range out {
			out[i] ^= 0xff
		}
	}
	return string(out)
}

func TestDecimalsOfEveryShape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		precision := rapid.IntRange(1, 65).Draw(r, "precision")
		scale := rapid.IntRange(0, min(precision, 30)).Draw(r, "scale")
		digits := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), precision, precision, -1).Draw(r, "digits")
		negative := rapid.Bool().Draw(r, "negative") && strings.Trim(digits, "0") != ""
		c, err := mycodec.OfLog(mycodec.LogColumn{Type: 246, Meta: uint16(precision<<8 | scale)})
		if err != nil {
			r.Fatal(err)
		}
		want := strings.TrimLeft(digits[:precision-scale], "0")
		if want == "" {
			want = "0"
		}
		if scale > 0 {
			want += "." + digits[precision-scale:]
		}
		if negative {
			want = "-" + want
		}
		cell := pack(digits, precision, scale, negative)
		if len(cell) != c.Width() {
			r.Fatalf("width %d, want %d", c.Width(), len(cell))
		}
		if got := read(t, c, mycodec.Log, cell)[0]; got != want {
			r.Fatalf("logged %s, want %s", got, want)
		}
		if got := read(t, c, mycodec.Text, want)[0]; got != want {
			r.Fatalf("selected %s, want %s", got, want)
		}
	})
}

// What Literal writes is what a SELECT shows, so a bound comes back as itself.
func TestLiteralsComeBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		column mycodec.CatalogColumn
		text   string
		want   string
	}{
		{mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint"}, "-9223372036854775808", "-9223372036854775808"},
		{mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint unsigned"}, "18446744073709551615", "18446744073709551615"},
		{mycodec.CatalogColumn{DataType: "date", ColumnType: "date"}, "2024-00-10", "'2024-00-10'"},
		{mycodec.CatalogColumn{DataType: "datetime", ColumnType: "datetime(3)", Fraction: 3}, "1969-12-31 23:59:59.999", "'1969-12-31 23:59:59.999000'"},
		{mycodec.CatalogColumn{DataType: "time", ColumnType: "time"}, "-838:59:59", "'-838:59:59.000000'"},
		{mycodec.CatalogColumn{DataType: "varchar", ColumnType: "varchar(9)", OctetLength: 9, Charset: "latin1"}, "it's", "_latin1 x'69742773'"},
		{mycodec.CatalogColumn{DataType: "varbinary", ColumnType: "varbinary(9)", OctetLength: 9}, "\x00", "x'00'"},
		{mycodec.CatalogColumn{DataType: "enum", ColumnType: "enum('a','b')", Charset: "latin1"}, "2", "2"},
	} {
		codec, err := mycodec.OfCatalog(c.column)
		if err != nil {
			t.Fatal(err)
		}
		key, err := codec.Key(nil, []byte(c.text), mycodec.Text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := codec.Literal(nil, key); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.column.ColumnType, got, err, c.want)
		}
	}
}

// FuzzLog holds that no bytes of the log make a decoder panic.
func FuzzLog(f *testing.F) {
	for _, cell := range []string{"", "\x00", "\x04\x00", "\x00\x01\x00\x0c\x00\x0b\x00\x01\x00\x05\x01\x00a", "\x80\x00\x00\x00\x00"} {
		f.Add(byte(245), uint16(4), []byte(cell))
	}
	f.Add(byte(246), uint16(65<<8|30), bytes.Repeat([]byte{0xff}, 30))
	f.Fuzz(func(t *testing.T, typ byte, meta uint16, cell []byte) {
		c, err := mycodec.OfLog(mycodec.LogColumn{Type: typ, Meta: meta, Charset: "utf16", Labels: [][]byte{{0, 'a'}}})
		if err != nil {
			return
		}
		s, err := rows.NewSchema("d.t", 1, mycodec.Origin, []rows.Column{{Name: "c", Type: c.Type()}})
		if err != nil {
			t.Fatal(err)
		}
		b := rows.NewBuilder(s)
		decode, err := c.Decoder(b, 0, mycodec.Log)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Key(nil, cell, mycodec.Log)
		if decode(cell) != nil {
			return
		}
		b.EndRow(rows.Meta{Op: rows.OpInsert})
		if _, err := b.Flush(); err != nil {
			t.Fatal(err)
		}
	})
}
