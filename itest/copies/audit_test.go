package copies

import (
	"testing"

	"weir.dev/weir/pkg/rows"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	read, insert, update, del := rows.OpRead, rows.OpInsert, rows.OpUpdateAfter, rows.OpDelete
	for name, c := range map[string]struct {
		came  []change
		wrote []int64
		wrong string
	}{
		"read":                  {[]change{{read, 2}}, []int64{1, 2}, ""},
		"read, then changed":    {[]change{{read, 1}, {update, 2}, {del, Gone}}, []int64{1, 2, Gone}, ""},
		"inserted":              {[]change{{insert, 1}, {update, 2}}, []int64{1, 2}, ""},
		"inserted again":        {[]change{{insert, 3}}, []int64{1, Gone, 3}, ""},
		"both":                  {[]change{{read, 2}, {update, 2}}, []int64{1, 2}, "not the last that was written"},
		"both, inserted":        {[]change{{read, 1}, {insert, 1}}, []int64{1}, "inserted although it was there"},
		"neither":               {[]change{{update, 2}}, []int64{1, 2}, "changed although it was not there"},
		"a change left out":     {[]change{{read, 1}, {update, 3}}, []int64{1, 2, 3}, "not the last that was written"},
		"the last left out":     {[]change{{read, 1}}, []int64{1, 2}, "not the last that was written"},
		"a change that was not": {[]change{{read, 1}, {update, 2}}, []int64{1}, "came more often than it was written"},
		"an insert that was not": {
			[]change{{insert, 2}}, []int64{1, 2}, "inserted although only changed",
		},
	} {
		if got := judge(c.came, c.wrote); got != c.wrong {
			t.Errorf("%s: judged %q, want %q", name, got, c.wrong)
		}
	}
}
