package cdcpostgres

import (
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// O48: a row above the limit stops the job with its table, its key's columns and its size, and without what is in it. What
// comes before it is emitted, nothing behind it is.
func TestRowAboveTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReader(t, core.Position{End: 50}, source.Config{})
		r.rowLimit = 1000
		w := (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", strings.Repeat("a", 900))).commit(100, 110)
		w.begin(120, 2).row('I', 1, tuple('N', "2", strings.Repeat("secret ", 200))).row('I', 1, tuple('N', "3", "c")).commit(120, 130)
		push(t, r, w)
		var out kept
		_, err := r.Poll(t.Context(), &out, nil)
		if fault.CodeOf(err) != fault.SrcTooBig {
			t.Fatalf("error is %v", err)
		}
		for _, part := range []string{"s.t", "key k", "1419 bytes", "limit is 1000"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %v", part, err)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("a value is in %v", err)
		}
		for _, line := range out.lines() {
			if strings.Contains(line, "(2") || strings.Contains(line, "(3") {
				t.Errorf("emitted was %.100s", line)
			}
		}
	})
}
