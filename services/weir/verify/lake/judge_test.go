package lake

import (
	"testing"

	"github.com/apache/iceberg-go"
)

// Both readers' forms of one value become the same, and of two values do not.
func TestNeutral(t *testing.T) {
	t.Parallel()
	list := &iceberg.ListType{ElementID: 1, Element: iceberg.PrimitiveTypes.String}
	for _, tc := range []struct {
		kind         iceberg.Type
		ours, theirs string
		same         bool
	}{
		{iceberg.PrimitiveTypes.Bool, "t", "true", true},
		{iceberg.PrimitiveTypes.Bool, "f", "true", false},
		{iceberg.DecimalTypeOf(12, 2), "100.50", "100.5", true},
		{iceberg.DecimalTypeOf(12, 2), "100.00", "100", true},
		{iceberg.DecimalTypeOf(12, 2), "10.00", "100", false},
		{iceberg.PrimitiveTypes.Float64, "1e-05", "0.00001", true},
		{iceberg.PrimitiveTypes.TimestampTz, "2026-01-01 00:00:00.5+00", "2026-01-01 00:00:00.500000", true},
		{iceberg.PrimitiveTypes.Timestamp, "2026-01-01 00:00:10", "2026-01-01 00:00:10.000000", true},
		{list, `{a,"b c",NULL}`, `["a","b c",null]`, true},
		{list, `{"a,b"}`, `["a","b"]`, false},
		{iceberg.PrimitiveTypes.String, "1.50", "1.5", false},
	} {
		if got := neutral(tc.kind, tc.ours, false) == neutral(tc.kind, tc.theirs, true); got != tc.same {
			t.Errorf("%s: %q and %q are the same: %t", tc.kind, tc.ours, tc.theirs, got)
		}
	}
}
