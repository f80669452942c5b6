package rows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"weir.dev/weir/pkg/rows"
)

func TestSchemaSurvivesArrow(t *testing.T) {
	var columns []rows.Column
	for i, typ := range everyType() {
		c := rows.Column{Name: fmt.Sprintf("c%d 測試", i), Type: typ, Nullable: i%2 == 0}
		if i%3 == 0 {
			c.Source = "source " + typ.String()
		}
		columns = append(columns, c)
	}
	columns[4].KeyPos, columns[2].KeyPos = 1, 2
	columns[4].ID, columns[2].ID = 7, 3
	columns[1].Filled, columns[3].Fill, columns[3].Filled = true, "it's", true
	s, err := rows.NewSchema("db.t", 7, "mysql", columns)
	if err != nil {
		t.Fatal(err)
	}
	if k := s.Key(); len(k) != 2 || k[0] != 4 || k[1] != 2 {
		t.Errorf("key is %v", k)
	}
	got, err := rows.SchemaFromArrow(s.Arrow())
	if err != nil {
		t.Fatal(err)
	}
	if !got.Same(s) || got.Origin() != "mysql" || got.Version() != 7 {
		t.Errorf("came back as %+v", got)
	}
	for i, c := range columns {
		if got.Column(i) != c {
			t.Errorf("column %d came back as %+v", i, got.Column(i))
		}
	}
}

// A table may have columns named like ours.
func TestSystemColumnsAreFoundByPlace(t *testing.T) {
	s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "_op", Type: rows.Of(rows.KindText)}, {Name: "_absent", Type: rows.Of(rows.KindText)}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	b.Null(0)
	b.Absent(1)
	b.EndRow(rows.Meta{Op: rows.OpUpdateAfter, Ts: rows.NoTs})
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	msg, err := batch.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	var d rows.Decoder
	got, err := d.Decode(msg)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"op":"update_after","table":"t","seq":0,"ts":null,"txn":0,"xid":0,"ord":0,"row":{"_op":null},"absent":["_absent"]}`
	if l := lines(got); l[0] != want {
		t.Errorf("got %s", l[0])
	}
}

func TestFingerprintSeesEverythingButTheVersion(t *testing.T) {
	base := []rows.Column{{Name: "a", Type: rows.Of(rows.KindInt32), KeyPos: 1}, {Name: "b", Type: rows.Of(rows.KindText)}}
	make := func(table rows.TableID, version uint32, origin string, edit func([]rows.Column)) rows.Fingerprint {
		t.Helper()
		c := append([]rows.Column(nil), base...)
		edit(c)
		s, err := rows.NewSchema(table, version, origin, c)
		if err != nil {
			t.Fatal(err)
		}
		return s.Fingerprint()
	}
	none := func([]rows.Column) {}
	want := make("t", 1, "", none)
	if got := make("t", 2, "", none); got != want {
		t.Error("the version changed it")
	}
	if got := make("t", 1, "", func(c []rows.Column) { c[0].ID, c[1].ID = 1, 2 }); got != want {
		t.Error("identities that are places changed it")
	}
	seen := map[rows.Fingerprint]string{want: "base"}
	for name, f := range map[string]rows.Fingerprint{
		"table":    make("u", 1, "", none),
		"origin":   make("t", 1, "x", none),
		"name":     make("t", 1, "", func(c []rows.Column) { c[1].Name = "c" }),
		"type":     make("t", 1, "", func(c []rows.Column) { c[1].Type = rows.Of(rows.KindJSON) }),
		"source":   make("t", 1, "", func(c []rows.Column) { c[1].Source = "citext" }),
		"nullable": make("t", 1, "", func(c []rows.Column) { c[1].Nullable = true }),
		"key":      make("t", 1, "", func(c []rows.Column) { c[1].KeyPos = 2 }),
		"order":    make("t", 1, "", func(c []rows.Column) { c[0], c[1] = c[1], c[0] }),
		"identity": make("t", 1, "", func(c []rows.Column) { c[1].ID = 3 }),
		"fill":     make("t", 1, "", func(c []rows.Column) { c[1].Filled = true }),
		"filled":   make("t", 1, "", func(c []rows.Column) { c[1].Fill, c[1].Filled = "7", true }),
	} {
		if other, dup := seen[f]; dup {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[f] = name
	}
}

func TestNewSchemaRefuses(t *testing.T) {
	text := rows.Of(rows.KindText)
	for want, columns := range map[string][]rows.Column{
		"empty or not UTF-8":     {{Name: "", Type: text}},
		"name or source type":    {{Name: "a\xff", Type: text}},
		"repeated":               {{Name: "a", Type: text}, {Name: "a", Type: text}},
		"unknown kind":           {{Name: "a"}},
		"key positions":          {{Name: "a", Type: text, KeyPos: 2}},
		"key position 1":         {{Name: "a", Type: text, KeyPos: 1}, {Name: "b", Type: text, KeyPos: 1}},
		"at most":                make([]rows.Column, rows.MaxColumns+1),
		"key positions are not":  {{Name: "a", Type: text, KeyPos: -1}},
		"precision is 1 to 76":   {{Name: "a", Type: rows.Decimal(80, 0)}},
		"identity repeated":      {{Name: "a", Type: text, ID: 2}, {Name: "b", Type: text, ID: 2}},
		"a fill that is not":     {{Name: "a", Type: text, Fill: "7"}},
		"only a decimal has a p": {{Name: "a", Type: rows.Type{Kind: rows.KindText, Scale: 1}}},
	} {
		if _, err := rows.NewSchema("t", 1, "", columns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestSchemaFromArrowRefuses(t *testing.T) {
	s := orders(t).Arrow()
	md := s.Metadata()
	replace := func(key, value string) *arrow.Schema {
		m := md.ToMap()
		m[key] = value
		n := arrow.MetadataFrom(m)
		return arrow.NewSchema(s.Fields(), &n)
	}
	fields := s.Fields()
	fields[0].Type = arrow.PrimitiveTypes.Int32
	for name, bad := range map[string]*arrow.Schema{
		"no metadata":    arrow.NewSchema(s.Fields(), nil),
		"other format":   replace("weir.format", "2"),
		"fingerprint":    replace("weir.fingerprint", "0000000000000000"),
		"renamed table":  replace("weir.table", "public.other"),
		"columns":        replace("weir.columns", "4"),
		"part as system": replace("weir.columns", "2"),
		"version":        replace("weir.version", "-1"),
		"type mismatch":  arrow.NewSchema(fields, &md),
	} {
		if _, err := rows.SchemaFromArrow(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
