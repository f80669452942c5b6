package cdcmysql

import (
	"math"
	"strconv"
	"testing"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/mycodec"
)

func planOf(t *testing.T, types ...mycodec.CatalogColumn) *scanPlan {
	t.Helper()
	d := &described{}
	for i, c := range types {
		codec, err := mycodec.OfCatalog(c)
		if err != nil {
			t.Fatal(err)
		}
		d.add("k"+strconv.Itoa(i), false, codec)
		d.key = append(d.key, i)
	}
	return &scanPlan{table: &table{described: d}}
}

func keyOf(t *testing.T, p *scanPlan, texts ...string) cdc.Key {
	t.Helper()
	key := make(cdc.Key, len(texts))
	for i, text := range texts {
		var err error
		if key[i], err = p.codecs[i].Key(nil, []byte(text), mycodec.Text); err != nil {
			t.Fatal(err)
		}
	}
	return key
}

// Only keys that are one whole number can be counted on in, and not those that a server reads as years.
func TestNumbered(t *testing.T) {
	integer := mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint"}
	unsigned := mycodec.CatalogColumn{DataType: "bigint", ColumnType: "bigint unsigned"}
	year := mycodec.CatalogColumn{DataType: "year", ColumnType: "year"}
	text := mycodec.CatalogColumn{DataType: "varchar", ColumnType: "varchar(9)", OctetLength: 36, Charset: "utf8mb4"}
	for _, c := range []struct {
		name string
		plan *scanPlan
		key  []string
		want string // empty for none
	}{
		{"negative", planOf(t, integer), []string{"-3"}, "97"},
		{"behind the largest", planOf(t, unsigned), []string{strconv.FormatUint(math.MaxUint64, 10)}, "18446744073709551715"},
		{"year", planOf(t, year), []string{"0"}, ""},
		{"text", planOf(t, text), []string{"7"}, ""},
		{"two columns", planOf(t, integer, integer), []string{"1", "2"}, ""},
	} {
		got, ok := c.plan.numbered(keyOf(t, c.plan, c.key...), 100)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", c.name, got, ok, c.want)
		}
	}
	if _, ok := planOf(t, integer).numbered(nil, 100); ok {
		t.Error("a number behind the beginning of the table")
	}
}

func TestDense(t *testing.T) {
	p := planOf(t, mycodec.CatalogColumn{DataType: "int", ColumnType: "int"})
	for _, c := range []struct {
		low, high string
		want      bool
	}{{"-100", "0", true}, {"0", "200", true}, {"0", "201", false}} {
		if got := p.dense(keyOf(t, p, c.low), keyOf(t, p, c.high), 100); got != c.want {
			t.Errorf("100 rows from %s to %s: dense is %t", c.low, c.high, got)
		}
	}
	if p.dense(nil, keyOf(t, p, "1"), 100) || p.dense(keyOf(t, p, "1"), nil, 100) {
		t.Error("dense without both ends")
	}
}
