package verdict

import (
	"maps"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
)

// Change is one row as it became visible at a target.
type Change struct {
	Table string
	Key   string
	Op    rows.Op
	Txn   uint64
	Ord   uint32
	// Row is the row's columns as JSON; it is not part of what makes two changes the same.
	Row string
	// Epoch and Fence tell which commit made it visible.
	Epoch epoch.ID
	Fence fence.Token
}

// LedgerID names a ledger in a target.
type LedgerID struct{ Job, Sink string }

// Applied is one row of a target's ledger log.
type Applied struct {
	LedgerID
	Ref, Prev epoch.Ref
	Fence     fence.Token
	Rows      uint64
	At        time.Time
}

// Replay is the table state that an upsert of changes in their order gives: key to row, by table. Tables that were
// emptied are left out.
func Replay(changes []Change) map[string]map[string]string {
	state := make(map[string]map[string]string)
	for _, c := range changes {
		table := state[c.Table]
		switch c.Op {
		case rows.OpTruncate:
			clear(table)
		case rows.OpDelete:
			delete(table, c.Key)
		case rows.OpUpdateBefore:
		case rows.OpRead, rows.OpInsert, rows.OpUpdateAfter:
			if table == nil {
				table = make(map[string]string)
				state[c.Table] = table
			}
			table[c.Key] = c.Row
		}
	}
	maps.DeleteFunc(state, func(_ string, rows map[string]string) bool { return len(rows) == 0 })
	return state
}
