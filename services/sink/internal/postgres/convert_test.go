package postgres

import "testing"

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
