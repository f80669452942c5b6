package cdcmysql

import (
	"slices"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
)

// A transaction of a finished file passes with its end, or not at all; in the file that is being written steps pass as they come.
func TestUnbroken(t *testing.T) {
	t.Parallel()
	at := func(seq uint64) position.BinlogPos { return position.BinlogPos{Base: "binlog", Seq: seq, Pos: 4} }
	const rows = stepRows
	for name, c := range map[string]struct {
		newest   position.BinlogPos
		seq      uint64
		size     int
		steps    []stepKind
		pass     []int // how many steps each lets through
		incident bool
	}{
		"whole in an old file":        {at(7), 6, 1, []stepKind{stepBegin, rows, rows, stepCommit, stepIdle}, []int{0, 0, 0, 4, 1}, false},
		"broken in an old file":       {at(7), 6, 1, []stepKind{stepIdle, stepBegin, rows, stepIdle, stepBroken, stepIdle, stepBegin, stepOutcome}, []int{1, 0, 0, 0, 0, 1, 0, 2}, false},
		"prepared in an old file":     {at(7), 6, 1, []stepKind{stepBegin, rows, stepPrepare}, []int{0, 0, 3}, false},
		"in the file that is written": {at(7), 7, 1, []stepKind{stepBegin, rows, stepCommit}, []int{1, 1, 1}, false},
		"large":                       {at(7), 6, heldBytes, []stepKind{stepBegin, rows, rows, stepCommit}, []int{0, 2, 1, 1}, false},
		"large and broken":            {at(7), 6, heldBytes, []stepKind{stepBegin, rows, stepBroken}, []int{0, 2, 0}, true},
		"of a server that cuts":       {position.BinlogPos{}, 6, 1, []stepKind{stepBegin, rows, stepCommit}, []int{1, 1, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := unbroken{newest: c.newest}
			var pass []int
			var err error
			for _, kind := range c.steps {
				var steps []step
				if steps, err = u.take(step{kind: kind, size: c.size}, at(c.seq), "sources.db"); err != nil {
					steps = nil
				}
				pass = append(pass, len(steps))
			}
			if !slices.Equal(pass, c.pass) || (fault.CodeOf(err) == fault.MYIncident) != c.incident {
				t.Errorf("passed %v, %v; want %v", pass, err, c.pass)
			}
		})
	}
}
