package rows_test

import (
	"testing"

	"weir.dev/weir/pkg/rows"
)

// everyType is one type of each kind and layout.
func everyType() []rows.Type {
	var out []rows.Type
	for k := rows.KindBool; k < rows.KindList; k++ {
		switch k {
		case rows.KindDecimal:
			out = append(out, rows.Decimal(10, 2), rows.Decimal(38, 0), rows.Decimal(39, 39), rows.Decimal(76, 5))
		default:
			out = append(out, rows.Of(k))
		}
	}
	for _, e := range out {
		out = append(out, rows.List(e))
	}
	return out
}

func TestParseType(t *testing.T) {
	for _, typ := range everyType() {
		got, err := rows.ParseType(typ.String())
		if err != nil || got != typ {
			t.Errorf("%q came back as %v (%v)", typ, got, err)
		}
	}
	for _, bad := range []string{
		"", "int", "decimal", "decimal()", "decimal(0,0)", "decimal(77,0)", "decimal(5,6)", "decimal(+5,1)", "decimal(5,1",
		"decimal(5)", "decimal(300,1)", "list", "list<>", "list<list<text>>", "list<text", "Text", "kind(99)",
	} {
		if got, err := rows.ParseType(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func TestTypeValidate(t *testing.T) {
	for _, bad := range []rows.Type{
		{},
		{Kind: 99},
		{Kind: rows.KindText, Precision: 5},
		{Kind: rows.KindText, Elem: rows.KindText},
		{Kind: rows.KindList},
		rows.List(rows.List(rows.Of(rows.KindText))),
		rows.Decimal(0, 0),
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
