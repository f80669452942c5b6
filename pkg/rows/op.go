package rows

import "strconv"

// Op says what happened to a row. The numbers are the wire form in `_op` and never change.
type Op uint8

// The operations. Zero is not one of them, so a forgotten value is an error and not an insert.
const (
	OpRead         Op = 1 // a row seen by a snapshot
	OpInsert       Op = 2
	OpUpdateBefore Op = 3 // the row before an update; directly precedes its OpUpdateAfter in the same batch
	OpUpdateAfter  Op = 4
	OpDelete       Op = 5 // at least the key columns are set; columns the source did not send are absent
	OpTruncate     Op = 6 // the whole table; every column is null
)

// Valid reports whether o is one of the defined operations.
func (o Op) Valid() bool { return o >= OpRead && o <= OpTruncate }

// String gives the word used in the JSON view: read, insert, update_before, update_after, delete, truncate.
func (o Op) String() string {
	switch o {
	case OpRead:
		return "read"
	case OpInsert:
		return "insert"
	case OpUpdateBefore:
		return "update_before"
	case OpUpdateAfter:
		return "update_after"
	case OpDelete:
		return "delete"
	case OpTruncate:
		return "truncate"
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}
