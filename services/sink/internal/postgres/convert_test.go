package postgres

import "testing"

func TestWider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"bigint", "integer", true},
		{"integer", "bigint", false},
		{"integer", "integer", false},
		{"numeric", "bigint", true},
		{"numeric(20,0)", "bigint", true},
		{"numeric(20,4)", "bigint", false},
		{"bigint", "numeric(3,0)", false},
		{"numeric(12,2)", "numeric(10,2)", true},
		{"numeric(12,4)", "numeric(12,2)", false},
		{"numeric", "numeric(10,2)", true},
		{"numeric(10,2)", "numeric", false},
		{"double precision", "real", true},
		{"text", "character varying(10)", true},
		{"character varying(20)", "character varying(10)", true},
		{"character varying(10)", "character varying(20)", false},
		{"character varying", "character varying(20)", true},
		{"timestamp(6) without time zone", "timestamp(3) without time zone", true},
		{"text", "integer", false},
		{"date", "timestamp without time zone", false},
	} {
		if got := wider(tt.a, tt.b); got != tt.want {
			t.Errorf("wider(%s, %s) = %t", tt.a, tt.b, got)
		}
	}
}

func TestConversion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stage  string
		column column
		cast   string
		direct bool
	}{
		{"integer", column{SQLType: "integer"}, "", true},
		{"integer", column{SQLType: "bigint"}, "", false},
		{"numeric", column{SQLType: "numeric(10,2)"}, "", true},
		{"text", column{SQLType: "character varying(5)"}, "", true},
		{"text", column{SQLType: "character(5)"}, "::bpchar", true},
		{"text", column{SQLType: "interval"}, "::interval", false},
		{"text", column{SQLType: "integer[]"}, "::integer[]", false},
		{"text", column{SQLType: "numeric(10,2)[]"}, "::numeric[]", false},
		{"text", column{SQLType: "bit(8)"}, `::"bit"`, false},
		{"text", column{SQLType: "bit(8)[]"}, `::"bit"[]`, false},
		{"text", column{SQLType: "character(5)[]"}, "::bpchar[]", false},
		{"text", column{SQLType: "shop.mood[]", Kind: "b"}, "::shop.mood[]", false},
		{"text", column{SQLType: "mood", Kind: "e"}, "::mood", true},
		{"timestamp without time zone", column{SQLType: "timestamp(3) without time zone"}, "", true},
		{"bigint", column{SQLType: "oid"}, "::oid", false},
		{"json", column{SQLType: "jsonb"}, "::jsonb", false},
	} {
		if cast, direct := conversion(tt.stage, tt.column); cast != tt.cast || direct != tt.direct {
			t.Errorf("conversion(%s, %s) = %q, %t", tt.stage, tt.column.SQLType, cast, direct)
		}
	}
}
