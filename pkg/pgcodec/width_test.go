package pgcodec_test

import (
	"testing"

	"weir.dev/weir/pkg/pgcodec"
)

func TestWider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"bigint", "integer", true},
		{"integer", "bigint", false},
		{"integer", "integer", false},
		{"bigint[]", "integer[]", true},
		{"bigint[]", "integer", false},
		{"numeric(8,0)[]", "numeric(7,1)[]", false},
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
		if got := pgcodec.Wider(tt.a, tt.b); got != tt.want {
			t.Errorf("Wider(%s, %s) = %t", tt.a, tt.b, got)
		}
	}
}

func TestKeepsValuesAndRounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to      string
		keeps, rounds bool // the latter on assignment of from to a column of to
	}{
		{"integer", "integer", true, false},
		{"integer", "bigint", true, false},
		{"bigint", "integer", true, false},
		{"bigint", "numeric", true, false},
		{"numeric", "bigint", false, true},
		{"numeric(10,4)", "numeric(10,2)", false, true},
		{"numeric(10,2)", "numeric(11,4)", false, false}, // digits before the point are lost: an error
		{"numeric(10,2)", "numeric(12,2)", true, false},
		{"numeric(12,2)", "numeric(10,2)", false, false},
		{"numeric", "numeric(10,2)", false, true},
		{"double precision", "real", false, true},
		{"real", "double precision", true, false},
		{"bigint", "double precision", false, true},
		{"double precision", "numeric", false, true},
		{"character varying(10)", "text", true, false},
		{"text", "character varying(10)", true, false},
		{"character(5)", "character(3)", false, false},
		{"bit(4)", "bit(8)", false, false},
		{"timestamp(6) without time zone", "timestamp(3) without time zone", false, true},
		{"timestamp without time zone", "timestamp with time zone", false, false},
		{"text", "integer", false, false},
		{"numeric(10,4)[]", "numeric(10,2)[]", false, true},
	} {
		if got := pgcodec.KeepsValues(tt.from, tt.to); got != tt.keeps {
			t.Errorf("KeepsValues(%s, %s) = %t", tt.from, tt.to, got)
		}
		if got := pgcodec.Rounds(tt.to, tt.from); got != tt.rounds {
			t.Errorf("Rounds(%s, %s) = %t", tt.to, tt.from, got)
		}
	}
}
