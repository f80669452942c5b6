package cdcmysql

import (
	"fmt"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
)

// unbroken lets transactions through that are whole. A server that is killed may leave the beginning of one at the end of its log:
// MySQL cuts it off when it comes back, MariaDB leaves it there, and whoever reads that file later gets it. So transactions of a
// file that was finished when the stream began are held until their end has come. In the file that is being written a server shows
// nothing but whole ones.
type unbroken struct {
	newest position.BinlogPos // when the stream began; the zero value holds nothing
	held   []step
	bytes  int
	passed bool // the open transaction is let through as it comes
}

// take takes the next step, which lies at a place of the log, and returns what may pass.
func (w *unbroken) take(st step, at position.BinlogPos, where string) ([]step, error) {
	switch st.kind {
	case stepBegin:
		w.passed = w.newest.Base != at.Base || at.Seq >= w.newest.Seq
		w.held, w.bytes = nil, 0
	case stepBroken:
		if w.passed && w.newest.Base != "" {
			return nil, fault.New(fault.MYIncident, where, fmt.Sprintf("the server ended amid a transaction of more than %d MiB, before %s", heldBytes>>20, at))
		}
		w.held = nil
		return nil, nil
	case stepIdle: // also where a file ends amid a transaction
		if len(w.held) == 0 {
			return []step{st}, nil
		}
		return nil, nil
	case stepRows, stepTruncate, stepCommit, stepRemove, stepPrepare, stepOutcome:
	}
	if w.passed {
		return []step{st}, nil
	}
	w.held, w.bytes = append(w.held, st), w.bytes+st.size
	if st.kind == stepBegin || st.kind == stepRows && w.bytes <= heldBytes {
		return nil, nil
	}
	w.passed = true
	all := w.held
	w.held = nil
	return all, nil
}
