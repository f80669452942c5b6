package epoch

import (
	"fmt"
	"strconv"
)

// ID numbers the epochs of one job. It is handed out by the head record's nextEpoch, starts at 1 and is never used
// twice; zero means "none".
type ID uint64

// String is the decimal form used in headers, keys and object names.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// ParseID reads the decimal form; zero and second spellings are refused.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || ID(n).String() != s {
		return 0, fmt.Errorf("parse epoch id %q: not a canonical positive number", s)
	}
	return ID(n), nil
}

// Kind says why an epoch is taken.
type Kind string

// The kinds of epochs.
const (
	// Periodic epochs follow the job's interval.
	Periodic Kind = "PERIODIC"
	// Savepoint epochs are taken on request and kept until deleted.
	Savepoint Kind = "SAVEPOINT"
	// Terminal is the last epoch of a drained job.
	Terminal Kind = "TERMINAL"
	// Restore marks the manifest that continues the chain after a restore; it covers no rows.
	Restore Kind = "RESTORE"
)
