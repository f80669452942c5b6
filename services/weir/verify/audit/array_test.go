package audit

import "testing"

// As PostgreSQL's array_out writes them.
func TestArrayText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		elems []string
		want  string
	}{
		{nil, "{}"},
		{[]string{"a", "日本"}, "{a,日本}"},
		{[]string{"", "null", "NULLs"}, `{"","null",NULLs}`},
		{[]string{`a"b`, `c\d`, "e f", "g,h", "{", "i\tj"}, "{\"a\\\"b\",\"c\\\\d\",\"e f\",\"g,h\",\"{\",\"i\tj\"}"},
	} {
		var elems []*string
		for _, e := range tc.elems {
			elems = append(elems, &e)
		}
		if got := ArrayText(elems); got != tc.want {
			t.Errorf("%q is %s, want %s", tc.elems, got, tc.want)
		}
	}
	if got := ArrayText([]*string{nil}); got != "{NULL}" {
		t.Errorf("null is %s", got)
	}
}
